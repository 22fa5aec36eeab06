"""What an examination reads of a broker, one value for each stored thing, before anybody judges it."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Final, TypeAlias

from msgspec import Struct

from dtq.domain.idempotency import IdempotencyRecord
from dtq.domain.task import EntryId, QueueName, Receipt, Task, TaskId, WorkerId
from dtq.domain.workers import Heartbeat


class Record(Struct, frozen=True):
    """A task's record as it was found; ``fault`` says why it cannot be read, and then no task is known."""

    task: Task | None = None
    fault: str = ""

    @property
    def is_missing(self) -> bool:
        """Whether there is none at all."""
        return self.task is None and not self.fault


class KeyFact(Struct, frozen=True, kw_only=True):
    """What is stored under an idempotency key, read as a record where it is one, and the task that this names."""

    queue: QueueName
    key: str
    text: str
    named: IdempotencyRecord | None
    record: Record

    @property
    def is_of_its_key(self) -> bool:
        """Whether the task that it names has this key."""
        task = self.record.task
        return task is not None and (task.queue, task.idempotency_key) == (self.queue, self.key)


class TaskFact(Struct, frozen=True, kw_only=True):
    """A stored task, and what the structures say of it.

    ``entered`` and ``lettered`` tell whether the entry, or the dead letter, that its record names is there, ``hollow``
    that this entry has no payload, whatever the record has, ``mistaken`` that it is another task's. ``owner`` is who
    owns the entry, ``idle`` since when nothing was heard of it; one that was ``passed`` has no owner and was read
    before, one that is ``fresh`` has none yet, and its group delivers it. ``trimmed`` tells that older dead letters
    than its own may have been trimmed away, ``unkeyed`` that nothing is stored under its idempotency key; ``key`` is
    what is, where it does not name this task. ``letter`` is a dead letter that names this task, whose record names
    none; only where the task was looked at by itself.
    """

    task_id: TaskId
    record: Record
    entered: bool = False
    hollow: bool = False
    mistaken: bool = False
    owner: WorkerId | None = None
    owner_lives: bool = False
    idle: timedelta = timedelta()
    passed: bool = False
    fresh: bool = False
    paused: bool = False
    scheduled: bool = False
    has_payload: bool = True
    lettered: bool = False
    trimmed: bool = False
    unkeyed: bool = False
    key: KeyFact | None = None
    letter: EntryId | None = None


class EntryFact(Struct, frozen=True, kw_only=True):
    """A stream entry, the record of the task that it names, and whether that is marked as cancelled.

    ``fields`` are the entry's own, payload included, where the entry was looked at by itself.
    """

    receipt: Receipt
    task_id: str
    record: Record
    cancelled: bool = False
    fields: Mapping[str, str] = {}


class MemberFact(Struct, frozen=True):
    """An id that is in the schedule or on loan, and the record of the task that it names.

    ``due`` is when the schedule has it, ``claimed_at`` when a leader took it; the last moment stands for later.
    """

    task_id: TaskId
    record: Record
    due: datetime | None = None
    claimed_at: datetime | None = None


class LetterFact(Struct, frozen=True, kw_only=True):
    """A dead letter, and the record of the task that it names."""

    entry_id: EntryId
    task_id: str
    record: Record


class Role(Enum):
    """What a stored name is for."""

    TASK = "task"
    RESULT = "result"
    KEY = "idempotency record"
    HEARTBEAT = "heartbeat"
    LOCK = "lock"
    MARKS = "cancel marks"
    HANDLERS = "handlers'"
    BOUNDED = "bounded"
    """Whatever has no lifetime and another bound."""
    FOREIGN = "foreign"


LAST_ENTRY_ID: Final = EntryId("18446744073709551615-18446744073709551615")
"""The id after which a stream takes no further entry."""


class NameFact(Struct, frozen=True, kw_only=True):
    """A stored name: what it is for, of which other type it is, and whether it will never expire by itself.

    ``record`` is that of the task which the name is about, where it is about one; of a result only the id is known.
    ``lifetime`` is how long it has still to live, where it is not eternal. ``last_id`` is the last that a stream gave.
    """

    name: str
    role: Role
    wrong_type: str = ""
    is_eternal: bool = False
    lifetime: timedelta = timedelta()
    last_id: str = ""
    task_id: TaskId | None = None
    record: Record = Record()


class ConsumerFact(Struct, frozen=True, kw_only=True):
    """One who reads a queue: how many entries it owns, and for how long it has not read."""

    queue: QueueName
    worker: WorkerId
    owns: int
    idle: timedelta
    is_known: bool


class QueueFact(Struct, frozen=True, kw_only=True):
    """A name of a queue, from wherever it stands; ``groups`` counts the priorities of ``bands`` that can be read.

    ``waiting`` is a living task of it, where the name was read from the record of one.
    """

    name: str
    is_registered: bool
    waiting: TaskId | None = None
    groups: int = 0
    bands: int = 0


class ReadingFact(Struct, frozen=True):
    """The priorities of a queue whose group has read beyond the last entry that there ever was."""

    queue: QueueName
    ahead: Sequence[int]


class CountFact(Struct, frozen=True, kw_only=True):
    """What is noted as the number of a queue's scheduled tasks, and how many there are."""

    queue: QueueName
    text: str
    counted: int


class HeartbeatFact(Struct, frozen=True, kw_only=True):
    """A stored sign of life, None where it cannot be read, and whether its worker is among those that are known."""

    worker: WorkerId
    heartbeat: Heartbeat | None
    is_known: bool


SEE_TYPES: Final = "see key_of_another_type"
"""Why something could not be looked at, where somebody else's key stands for what it is in."""


class Denied(Struct, frozen=True):
    """Something that could not be looked at, and why."""

    what: str
    why: str


Fact: TypeAlias = (
    TaskFact
    | EntryFact
    | MemberFact
    | LetterFact
    | KeyFact
    | NameFact
    | ConsumerFact
    | QueueFact
    | ReadingFact
    | CountFact
    | HeartbeatFact
)
