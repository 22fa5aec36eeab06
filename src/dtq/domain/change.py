"""One legal step of one task, as a value that a broker can make real in one atomic act."""

from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dtq.domain.audit import AuditEntry
from dtq.domain.events import Event
from dtq.domain.outcome import AttemptResult
from dtq.domain.status import INITIAL, STEPS, TERMINAL, Place, TaskStatus
from dtq.domain.task import NO_VERSION, Task, WorkerId, contradiction, place_of


class Requirement(Enum):
    """What must hold, beside the version, at the moment a change is made real."""

    HELD = "held"
    """The consumer group's pending list names ``change.holder`` as the owner of the task's entry."""
    UNPAUSED = "unpaused"
    """The task's queue is not paused."""
    IN_DEAD_LETTERS = "in_dead_letters"
    """The dead-letter entry that ``before`` names is still there."""
    UNDELIVERED = "undelivered"
    """No worker has read the task's entry."""
    HOMELESS = "homeless"
    """The place that ``before`` should be in does not hold it."""

    # the hash of enumerations is made in Python, and a member equals nothing but itself
    __hash__ = object.__hash__


# named here, since to look up a member of an enumeration takes longer than to compare it
_HELD: Final = Requirement.HELD
_CANCELLED: Final = TaskStatus.CANCELLED


_NOT_NEW: Final = "a step needs a new token"


class IllegalChange(AssertionError):
    """A decision broke the transition table: a defect in the domain, never a user's fault."""


class Change(Struct, frozen=True, kw_only=True):
    """One step from *before* to *after*. ``after.version`` is the step's token, new and random each time.

    ``after.entry_id`` None, where *after* is ready or held, asks the broker for a new stream entry, whose id it
    then stores; likewise ``dlq_entry_id`` None where *after* is dead. Building an illegal step raises IllegalChange.
    ``attempt_result`` and ``ran`` tell observers of the attempt that the step ends; they are not stored.
    """

    before: Task | None
    after: Task
    at: datetime
    event: Event | None = None
    requires: tuple[Requirement, ...] = ()
    holder: WorkerId | None = None
    audit: AuditEntry | None = None
    result: str | None = None
    attempt_result: AttemptResult | None = None
    ran: timedelta | None = None

    def __post_init__(self) -> None:
        before, after = self.before, self.after
        problem = contradiction(after) or (_birth_fault(after) if before is None else _step_fault(before, after))
        if problem is None and (_HELD in self.requires) != (self.holder is not None):
            problem = "HELD needs a holder, and nothing else may name one"
        if problem is not None:
            was = before.status if before else "nothing"
            message = f"{after.task_id}: {was} -> {after.status}: {problem}"
            raise IllegalChange(message)

    @property
    def stored(self) -> Task | None:
        """The task that the broker must hold for this step; None means that it must hold none."""
        return None if self.before is None or self.before.version == NO_VERSION else self.before

    @property
    def marks_cancelled(self) -> bool:
        """Whether a worker may already hold the entry of a task that is cancelled by this step."""
        return self.after.status is TaskStatus.CANCELLED and place_of(self.before) is Place.READY

    @property
    def scheduled_delta(self) -> int:
        """By how much this step changes the number of scheduled tasks of its queue: -1, 0 or +1."""
        return int(place_of(self.after) is Place.SCHEDULE) - int(place_of(self.before) is Place.SCHEDULE)

    @property
    def starts_life(self) -> bool:
        """Whether this step brings a task into being that no broker has held before."""
        return self.before is None

    @property
    def revives(self) -> bool:
        """Whether this step starts a new life of an ended task."""
        return self.before is not None and self.before.is_terminal and not self.after.is_terminal

    @property
    def may_bind_key(self) -> bool:
        """Whether this step makes an idempotency record where there is none: in a new life, or with a lost task."""
        return self.revives or self.stored is None


def _birth_fault(after: Task) -> str | None:
    """Name the first rule that a task breaks by how it begins, or None."""
    if after.version == NO_VERSION:
        return _NOT_NEW
    if after.status not in INITIAL:
        return "a task begins pending or queued"
    return None if after.attempt == 0 else "a task begins without an attempt"


def _step_fault(before: Task, after: Task) -> str | None:
    """Name the first rule that a step breaks, or None."""
    if after.version in (NO_VERSION, before.version):
        return _NOT_NEW
    if (
        before.task_id != after.task_id
        or before.queue != after.queue
        or before.priority != after.priority
        or before.max_attempts != after.max_attempts
        or before.idempotency_key != after.idempotency_key
    ):
        return "a step changes no identity"
    if before.discarded:
        return "nothing changes a discarded task"
    if before.status is after.status:
        if before.status in TERMINAL and not after.discarded and not _is_reburied(before, after):
            return "nothing changes an ended task"
    elif after.status not in STEPS[before.status]:
        return "no such transition"
    has_new_lease = after.lease != before.lease
    if before.cancel_requested and after.status is not _CANCELLED and has_new_lease:
        return "a requested cancellation ends in nothing else"
    # a new lease counts one attempt, and a new life forgets all of them
    is_revived = before.status in TERMINAL and after.status not in TERMINAL
    if after.attempt != (0 if is_revived else before.attempt + (has_new_lease and after.lease is not None)):
        return f"attempt {after.attempt} does not follow {before.attempt}"
    return None


def _is_reburied(before: Task, after: Task) -> bool:
    """Tell whether a dead letter is asked for in place of the one that the task had, or named where none was.

    Nothing else is new.
    """
    if (before.dlq_entry_id is None) is (after.dlq_entry_id is None) or place_of(after) is not Place.DEAD:
        return False
    return before == replace(after, payload=before.payload, dlq_entry_id=before.dlq_entry_id, version=before.version)
