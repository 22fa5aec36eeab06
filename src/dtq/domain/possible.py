"""What a stored task can be at all, so that a broker's record which somebody spoiled is known for what it is."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from dtq.domain.admission import (
    KEY_PATTERN,
    MAX_PRIORITY,
    MAX_TIMEOUT_MS,
    MAX_TTL_S,
    QUEUE_PATTERN,
    TASK_ID_PATTERN,
    TASK_TYPE_PATTERN,
)
from dtq.domain.entry import HIGHEST_ATTEMPTS
from dtq.domain.status import TERMINAL, TaskStatus
from dtq.domain.task import NO_VERSION, Task, contradiction
from dtq.domain.text import clean

HIGHEST_COUNT: Final = 2**53
"""The highest number that every reader of JSON reads as it is."""

# named here, since to look up a member of an enumeration takes longer than to compare it
_RUNNING: Final = TaskStatus.RUNNING

_MAX_SHOWN: Final = 20
_NONE: Final = timedelta()
_LONGEST_RUN: Final = timedelta(milliseconds=MAX_TIMEOUT_MS)
# whatever is stored to the millisecond has lost a part of one
_LONGEST_LIFE: Final = timedelta(seconds=MAX_TTL_S, milliseconds=1)
_LAST_START: Final = datetime.max.replace(tzinfo=UTC) - _LONGEST_RUN


def impossibility(task: Task) -> str | None:
    """Say why no history ends in *task* as a stored one, or None.

    Every decider brings about possible tasks from possible ones, and can decide about each of them.
    """
    return contradiction(task) or _name_fault(task) or _attempt_fault(task) or _time_fault(task)


def _shown(number: int) -> str:
    return clean(str(number), limit=_MAX_SHOWN)


def _name_fault(task: Task) -> str | None:
    if task.version == NO_VERSION:
        return "version is missing"
    if not TASK_ID_PATTERN.fullmatch(task.task_id):
        return "task_id is no id of a task"
    if not _is_queue(task.queue):
        return "queue is no name of a queue"
    if not 0 <= task.priority <= MAX_PRIORITY:
        return f"priority is {_shown(task.priority)}, not within 0..{MAX_PRIORITY}"
    if not _is_task_type(task.task_type):
        return "task_type is no name of a task type"
    key = task.idempotency_key
    return None if key is None or KEY_PATTERN.fullmatch(key) else "idempotency_key is none that may be given"


def _attempt_fault(task: Task) -> str | None:
    if not 1 <= task.max_attempts <= HIGHEST_ATTEMPTS:
        return f"max_attempts is {_shown(task.max_attempts)}, not within 1..{HIGHEST_ATTEMPTS}"
    if not 0 <= task.previous_attempts_dropped <= HIGHEST_COUNT:
        return f"previous_attempts_dropped is not within 0..{HIGHEST_COUNT}"
    if task.status is _RUNNING:
        return None if task.attempt else "attempt is 0, and status is running"
    if task.attempt == task.max_attempts and task.status not in TERMINAL:
        return f"attempt is {task.attempt}, the last that max_attempts allows, and status is {task.status}"
    return None


def _time_fault(task: Task) -> str | None:
    if not _NONE < task.timeout <= _LONGEST_RUN:
        return f"timeout_ms is not within 1..{MAX_TIMEOUT_MS}"
    if task.started_at is not None and task.started_at > _LAST_START:
        return "started_at is so late that its run would end after the end of time"
    if task.ttl_at is not None and not _NONE <= task.ttl_at - (task.requeued_at or task.created_at) <= _LONGEST_LIFE:
        return "ttl_at is before created_at, or too long after it"
    return None


# most tasks share a few queues and types, and this is on the path of every reading


@lru_cache(maxsize=1024)
def _is_queue(name: str) -> bool:
    return QUEUE_PATTERN.fullmatch(name) is not None


@lru_cache(maxsize=1024)
def _is_task_type(name: str) -> bool:
    return TASK_TYPE_PATTERN.fullmatch(name) is not None
