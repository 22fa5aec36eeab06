"""What the world is told when a task or a worker changes."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from dtq.domain.task import QueueName, Task, TaskId, WorkerId


class EventType(StrEnum):
    """The kinds of event (contract section 8; EXPIRED, CANCEL_REQUESTED and the absorbed duplicate are additions)."""

    TASK_QUEUED = "TASK_QUEUED"
    TASK_STARTED = "TASK_STARTED"
    TASK_SUCCEEDED = "TASK_SUCCEEDED"
    TASK_FAILED = "TASK_FAILED"
    TASK_RETRY_SCHEDULED = "TASK_RETRY_SCHEDULED"
    TASK_RETRIED = "TASK_RETRIED"
    TASK_DEAD_LETTERED = "TASK_DEAD_LETTERED"
    TASK_CANCELLED = "TASK_CANCELLED"
    TASK_CANCEL_REQUESTED = "TASK_CANCEL_REQUESTED"
    TASK_EXPIRED = "TASK_EXPIRED"
    DUPLICATE_ABSORBED = "task.duplicate_absorbed"
    WORKER_STARTED = "WORKER_STARTED"
    WORKER_STOPPED = "WORKER_STOPPED"
    WORKER_STALE = "WORKER_STALE"
    CONFIGURATION_CHANGED = "CONFIGURATION_CHANGED"

    # as a member equals its text; the hash of enumerations is made in Python, and looked up several times a step
    __hash__ = str.__hash__


class Event(Struct, frozen=True, kw_only=True):
    """One thing that happened. A step of a task makes at most one event, and its id is the step's token."""

    event_id: str
    ts: datetime
    type: EventType
    task_id: TaskId | None = None
    queue: QueueName | None = None
    task_type: str | None = None
    attempt: int | None = None
    worker_id: WorkerId | None = None
    metadata: Mapping[str, str | int | bool] | None = None


def task_event(
    task: Task,
    *,
    kind: EventType,
    event_id: str,
    at: datetime,
    worker: WorkerId | None = None,
    metadata: Mapping[str, str | int | bool] | None = None,
) -> Event:
    """Describe what just happened to *task*, as it is after the step."""
    return Event(
        event_id=event_id,
        ts=at,
        type=kind,
        task_id=task.task_id,
        queue=task.queue,
        task_type=task.task_type,
        attempt=task.attempt,
        worker_id=worker,
        metadata=metadata,
    )


def worker_event(kind: EventType, *, event_id: str, at: datetime, worker: WorkerId, queue: QueueName | None) -> Event:
    """Describe a change of a worker's life; the task fields stay empty."""
    return Event(event_id=event_id, ts=at, type=kind, worker_id=worker, queue=queue)


def pause_event(queue: QueueName, *, event_id: str, at: datetime, paused: bool) -> Event:
    """Announce that a queue was paused or resumed."""
    return Event(
        event_id=event_id,
        ts=at,
        type=EventType.CONFIGURATION_CHANGED,
        queue=queue,
        metadata={"queue": queue, "paused": paused},
    )
