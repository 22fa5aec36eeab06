"""A task as a value: what was asked, how far it has come, and which delivery of it is the real one."""

from datetime import datetime, timedelta
from typing import Final, NewType

from msgspec import Struct

from dtq.domain.status import HOMES, TERMINAL, Place, TaskStatus

TaskId = NewType("TaskId", str)
QueueName = NewType("QueueName", str)
WorkerId = NewType("WorkerId", str)
EntryId = NewType("EntryId", str)
LeaseToken = NewType("LeaseToken", str)
Version = NewType("Version", str)

NO_VERSION = Version("")
"""The version of a task that is not stored: nothing yet, or no longer."""

# named here, since to look up a member of an enumeration takes longer than to compare it
_RUNNING: Final = TaskStatus.RUNNING
_NOWHERE: Final = Place.NOWHERE


class Receipt(Struct, frozen=True):
    """The address of one stream entry. Ids repeat between streams, so only all three together identify it."""

    queue: QueueName
    priority: int
    entry_id: EntryId


class Failure(Struct, frozen=True, kw_only=True):
    """Why an attempt did not succeed; the message is already cleaned and cut."""

    error_class: str
    error_message: str
    retryable: bool


class AttemptRecord(Struct, frozen=True, kw_only=True):
    """One finished or lost attempt, kept in the task's history."""

    attempt: int
    started_at: datetime | None
    finished_at: datetime
    worker_id: WorkerId | None
    failure: Failure | None = None
    retry_delay: timedelta | None = None


class Task(Struct, frozen=True, kw_only=True):
    """A task as stored. ``payload`` None means not loaded; such a value is never written back."""

    task_id: TaskId
    queue: QueueName
    task_type: str
    priority: int
    max_attempts: int
    timeout: timedelta
    created_at: datetime
    available_at: datetime
    status: TaskStatus
    payload: str | None = None
    metadata: str = "{}"
    idempotency_key: str | None = None
    ttl_at: datetime | None = None

    attempt: int = 0
    started_at: datetime | None = None
    finished_at: datetime | None = None
    duration: timedelta | None = None
    worker_id: WorkerId | None = None
    failure: Failure | None = None
    retry_delay: timedelta | None = None
    cancel_requested: bool = False
    result_truncated: bool = False
    history: tuple[AttemptRecord, ...] = ()

    requeued_at: datetime | None = None
    previous_attempts: tuple[AttemptRecord, ...] = ()
    previous_attempts_dropped: int = 0
    discarded: bool = False

    entry_id: EntryId | None = None
    lease: LeaseToken | None = None
    dlq_entry_id: EntryId | None = None
    version: Version = NO_VERSION

    @property
    def is_stored(self) -> bool:
        """Whether a broker holds this task, as against one rebuilt from a stream entry."""
        return self.version != NO_VERSION

    @property
    def is_terminal(self) -> bool:
        """Whether the task has ended, so that only an operator can change it."""
        return self.status in TERMINAL

    @property
    def receipt(self) -> Receipt | None:
        """The address of the one live stream entry, or None where there is none."""
        if self.entry_id is None:
            return None
        return Receipt(self.queue, self.priority, self.entry_id)


def place_of(task: Task | None) -> Place:
    """Tell which structure of a broker holds *task*; a discarded dead letter and no task at all are nowhere."""
    if task is None or task.discarded:
        return _NOWHERE
    return HOMES[task.status]


def contradiction(task: Task) -> str | None:
    """Name the first rule that *task* breaks by itself, whatever came before it, or None."""
    if (task.lease is not None) != (task.status is _RUNNING):
        return "a lease belongs to a running task and to no other"
    if task.discarded and task.status is not TaskStatus.DEAD_LETTERED:
        return "only a dead letter can be discarded"
    if not 0 <= task.attempt <= task.max_attempts:
        return f"attempt {task.attempt} is not within 0..{task.max_attempts}"
    return None
