"""What people and programs are shown of a task: the same members in HTTP answers and on the command line."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, cast

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from dtq.application.tasks import TaskView
from dtq.domain.json_text import JsonProblem, object_problem, parse
from dtq.domain.status import TaskStatus
from dtq.domain.task import AttemptRecord, Task
from dtq.ports.broker import Recent

JsonObject = dict[str, Any]

_EMPTY: Final = "{}"

Status = Annotated[
    TaskStatus,
    Meta(description="Exact, but for expiry: a task past its `ttl_seconds` reads as before until it is next touched."),
]


class AttemptBody(Struct, frozen=True, kw_only=True):
    """One attempt that has ended."""

    attempt: int
    started_at: datetime | None
    finished_at: datetime
    worker_id: str | None
    error_class: str | None
    error_message: str | None
    retryable: bool | None
    retry_delay_ms: int | None


class TaskBody(Struct, frozen=True, kw_only=True):
    """A task. Lists leave out payload, result and history; `duplicate` is there only where a submission was one."""

    task_id: str
    idempotency_key: str | None
    task_type: str
    queue: str
    priority: int
    status: Status
    attempt: int
    max_attempts: int
    timeout_ms: int
    created_at: datetime
    available_at: datetime
    metadata: JsonObject
    started_at: datetime | None
    finished_at: datetime | None
    duration_ms: int | None
    worker_id: str | None
    error_class: str | None
    error_message: str | None
    retryable: bool | None
    retry_delay_ms: int | None
    cancel_requested: bool
    payload: JsonObject | UnsetType = UNSET
    result: Any | UnsetType = UNSET
    result_expired: bool | UnsetType = UNSET
    result_truncated: bool | UnsetType = UNSET
    history: list[AttemptBody] | UnsetType = UNSET
    duplicate: bool | UnsetType = UNSET


class TaskList(Struct, frozen=True, kw_only=True):
    """Tasks, the newest first; `unreadable` counts those that are left out, because their records cannot be read."""

    tasks: list[TaskBody]
    unreadable: int


def summary(task: Task) -> TaskBody:
    """Show a task as it stands in a list."""
    failure = task.failure
    return TaskBody(
        task_id=task.task_id,
        idempotency_key=task.idempotency_key,
        task_type=task.task_type,
        queue=task.queue,
        priority=task.priority,
        status=task.status,
        attempt=task.attempt,
        max_attempts=task.max_attempts,
        timeout_ms=_milliseconds(task.timeout),
        created_at=task.created_at,
        available_at=task.available_at,
        metadata=_metadata(task, unreadable=()),
        started_at=task.started_at,
        finished_at=task.finished_at,
        duration_ms=None if task.duration is None else _milliseconds(task.duration),
        worker_id=task.worker_id,
        error_class=None if failure is None else failure.error_class,
        error_message=None if failure is None else failure.error_message,
        retryable=None if failure is None else failure.retryable,
        retry_delay_ms=None if task.retry_delay is None else _milliseconds(task.retry_delay),
        cancel_requested=task.cancel_requested,
    )


def full(view: TaskView, *, duplicate: bool | UnsetType = UNSET) -> TaskBody:
    """Show everything of a task that is meant for the eye."""
    task = view.task
    payload = task.payload if task.payload is not None and object_problem(task.payload) is None else None
    result = view.result if view.result is not None and _is_json(view.result) else None
    spoiled = {"payload": payload is not task.payload, "result": result is not view.result}
    return msgspec.structs.replace(
        summary(task),
        metadata=_metadata(task, unreadable=[name for name, is_spoiled in spoiled.items() if is_spoiled]),
        payload=UNSET if payload is None else _as_received(payload),
        result=None if result is None else _as_received(result),
        result_expired=view.result_expired,
        result_truncated=task.result_truncated,
        history=[_attempt(record) for record in task.history],
        duplicate=duplicate,
    )


def listed(recent: Recent) -> TaskList:
    """Show tasks as a list."""
    return TaskList(tasks=[summary(task) for task in recent.tasks], unreadable=recent.unreadable)


def _attempt(record: AttemptRecord) -> AttemptBody:
    failure = record.failure
    return AttemptBody(
        attempt=record.attempt,
        started_at=record.started_at,
        finished_at=record.finished_at,
        worker_id=record.worker_id,
        error_class=None if failure is None else failure.error_class,
        error_message=None if failure is None else failure.error_message,
        retryable=None if failure is None else failure.retryable,
        retry_delay_ms=None if record.retry_delay is None else _milliseconds(record.retry_delay),
    )


def _metadata(task: Task, *, unreadable: Sequence[str]) -> JsonObject:
    """Return the client's metadata as received, and beside it what dtq remembers, and what somebody spoiled."""
    own: dict[str, object] = {}
    is_spoiled = task.metadata != _EMPTY and object_problem(task.metadata) is not None
    if is_spoiled or unreadable:
        own["unreadable"] = [*unreadable, *(["metadata"] if is_spoiled else [])]
    if task.previous_attempts:
        own["previous_attempts"] = [_attempt(record) for record in task.previous_attempts]
    if task.previous_attempts_dropped:
        own["previous_attempts_dropped"] = task.previous_attempts_dropped
    if task.discarded:
        own["discarded"] = True
    if not own:
        return _as_received(task.metadata)
    return {**({} if is_spoiled else msgspec.json.decode(task.metadata, type=dict[str, Raw])), **own}


def _is_json(text: str) -> bool:
    try:
        parse(text)
    except JsonProblem:
        return False
    return True


def _as_received(text: str) -> JsonObject:
    """Let *text* stand in an answer as it is; decoded and encoded again, large numbers would lose digits."""
    return cast("JsonObject", Raw(text.encode()))


def _milliseconds(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)
