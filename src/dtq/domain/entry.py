"""The fields of stream entries and dead letters, and the tasks that can be rebuilt from them (contract section 2).

The payload is not among them: brokers copy it from place to place without reading it.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from dtq.domain.admission import (
    KEY_PATTERN,
    MAX_PRIORITY,
    MAX_TIMEOUT_MS,
    QUEUE_PATTERN,
    TASK_ID_PATTERN,
    TASK_TYPE_PATTERN,
)
from dtq.domain.outcome import MAX_CLASS, MAX_MESSAGE
from dtq.domain.status import TaskStatus
from dtq.domain.task import AttemptRecord, EntryId, Failure, QueueName, Receipt, Task, TaskId, WorkerId
from dtq.domain.text import clean

MALFORMED_ENTRY: Final = "malformed_entry"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_MILLISECONDS_A_DAY: Final = 86_400_000
HIGHEST_ATTEMPTS: Final = 100
LAST_MS: Final = 253_402_300_799_999
"""The last millisecond that a datetime can hold; whoever writes to a stream by hand may give an id beyond it."""


# the steps of a batch share their moments
@lru_cache(maxsize=64)
def milliseconds(moment: datetime) -> int:
    """Return *moment* as whole milliseconds since the epoch."""
    since = moment - _EPOCH
    return since.days * _MILLISECONDS_A_DAY + since.seconds * 1000 + since.microseconds // 1000


def moment(value: int) -> datetime:
    """Return the moment that lies *value* milliseconds after the epoch. Raises ValueError where there is none."""
    if not 0 <= value <= LAST_MS:
        message = f"no moment is {str(value)[:20]} milliseconds after the epoch"
        raise ValueError(message)
    return _EPOCH + value * _MILLISECOND


FIELDS: Final = (
    "task_id",
    "queue",
    "task_type",
    "attempt",
    "max_attempts",
    "priority",
    "timeout_ms",
    "idempotency_key",
)
"""The names of an entry's fields, in their order."""

UNSTARTED: Final = (TaskStatus.QUEUED, 0)
"""The status of a task that waits for its first start, and how many attempts it has begun."""


def entry_fields(task: Task) -> dict[str, str]:
    """Return the fields of a new stream entry of *task*; ``attempt`` is the number that this delivery will run as."""
    return {
        "task_id": task.task_id,
        "queue": task.queue,
        "task_type": task.task_type,
        "attempt": str(task.attempt + 1),
        "max_attempts": str(task.max_attempts),
        "priority": str(task.priority),
        "timeout_ms": str(task.timeout // _MILLISECOND),
        "idempotency_key": task.idempotency_key or "",
    }


def dead_letter_fields(task: Task) -> dict[str, str]:
    """Return the fields of the dead letter of a task that has just been given up."""
    if task.failure is None or task.finished_at is None:
        message = f"{task.task_id} is buried without a failure"
        raise ValueError(message)
    return {
        **entry_fields(task),
        "attempt": str(task.attempt),
        "failed_at_ms": str(milliseconds(task.finished_at)),
        "attempts_made": str(task.attempt),
        "last_error": task.failure.error_message,
        "last_error_class": task.failure.error_class,
        "retryable": "1" if task.failure.retryable else "0",
        "worker_id": task.worker_id or "",
        "original_queue": task.queue,
    }


def malformed_fields(fields: Mapping[str, str], *, receipt: Receipt, at: datetime) -> dict[str, str]:
    """Return the dead letter of an entry that names no task that could be run, without its payload."""
    return {
        "task_id": clean(fields.get("task_id", "")),
        "queue": receipt.queue,
        "task_type": clean(fields.get("task_type", "")),
        "attempt": "0",
        "max_attempts": "0",
        "priority": str(receipt.priority),
        "timeout_ms": "0",
        "idempotency_key": "",
        "failed_at_ms": str(milliseconds(at)),
        "attempts_made": "0",
        "last_error": MALFORMED_ENTRY,
        "last_error_class": MALFORMED_ENTRY,
        "retryable": "0",
        "worker_id": "",
        "original_queue": receipt.queue,
    }


def usable_task_id(fields: Mapping[str, str]) -> TaskId | None:
    """Return the id of the task that an entry names, or None where it names none."""
    text = fields.get("task_id", "")
    return TaskId(text) if TASK_ID_PATTERN.fullmatch(text) else None


def rebuild(fields: Mapping[str, str], *, receipt: Receipt) -> Task | None:
    """Rebuild a queued task, whose record is gone, from its entry; None where the entry is malformed.

    Metadata, and with it the time to live, is lost. The task is not stored, so its version is empty.
    """
    task_id = usable_task_id(fields)
    task_type = fields.get("task_type", "")
    attempt = _integer(fields, "attempt", 1, HIGHEST_ATTEMPTS)
    highest = _integer(fields, "max_attempts", 1, HIGHEST_ATTEMPTS)
    timeout = _integer(fields, "timeout_ms", 1, MAX_TIMEOUT_MS)
    payload = fields.get("payload")
    key = fields.get("idempotency_key", "")
    created_at = int(receipt.entry_id.partition("-")[0])
    if task_id is None or attempt is None or highest is None or timeout is None or payload is None:
        return None
    if not TASK_TYPE_PATTERN.fullmatch(task_type) or fields.get("queue") != receipt.queue:
        return None
    if (key and not KEY_PATTERN.fullmatch(key)) or created_at > LAST_MS:
        return None
    return Task(
        task_id=task_id,
        queue=receipt.queue,
        task_type=task_type,
        priority=receipt.priority,
        max_attempts=highest,
        timeout=timedelta(milliseconds=timeout),
        created_at=moment(created_at),
        available_at=moment(created_at),
        status=TaskStatus.QUEUED,
        payload=payload,
        idempotency_key=key or None,
        attempt=min(attempt, highest) - 1,
        entry_id=receipt.entry_id,
    )


def revive(fields: Mapping[str, str], *, dlq_entry_id: EntryId) -> Task | None:
    """Rebuild a dead-lettered task, whose record is gone, from its dead letter; None where that is malformed.

    Of its attempts the last one is known.
    """
    queue = QueueName(fields.get("original_queue", ""))
    priority = _integer(fields, "priority", 0, MAX_PRIORITY)
    failed_at = _integer(fields, "failed_at_ms", 0, LAST_MS)
    if priority is None or failed_at is None or not QUEUE_PATTERN.fullmatch(queue):
        return None
    rebuilt = rebuild(fields, receipt=Receipt(queue, priority, dlq_entry_id))
    if rebuilt is None:
        return None
    last = AttemptRecord(
        attempt=rebuilt.attempt + 1,
        started_at=None,
        finished_at=moment(failed_at),
        worker_id=WorkerId(clean(fields.get("worker_id", ""))) or None,
        failure=_last_failure(fields),
    )
    return replace(
        rebuilt,
        status=TaskStatus.DEAD_LETTERED,
        attempt=last.attempt,
        finished_at=last.finished_at,
        worker_id=last.worker_id,
        failure=last.failure,
        history=(last,),
        entry_id=None,
        dlq_entry_id=dlq_entry_id,
    )


def _last_failure(fields: Mapping[str, str]) -> Failure:
    return Failure(
        error_class=clean(fields.get("last_error_class", ""), limit=MAX_CLASS),
        error_message=clean(fields.get("last_error", ""), limit=MAX_MESSAGE),
        retryable=fields.get("retryable") == "1",
    )


def _integer(fields: Mapping[str, str], name: str, low: int, high: int) -> int | None:
    text = fields.get(name, "")
    if not text.isascii() or not text.isdigit() or len(text) > len(str(high)):
        return None
    value = int(text)
    return value if low <= value <= high else None
