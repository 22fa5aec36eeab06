"""The small acts that mend what no step of a task reaches; which of them a finding needs: domain/remedies.py.

Each names what it was decided on, and is refused by the broker where that is not so any more.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import TypeAlias

from msgspec import Struct

from dtq.domain.facts import CountFact, EntryFact
from dtq.domain.idempotency import IdempotencyRecord
from dtq.domain.task import EntryId, QueueName, Receipt, Task, TaskId, Version, WorkerId


class RemoveEntry(Struct, frozen=True, kw_only=True):
    """Take an entry out of its stream that is not its task's own, or of a task that was cancelled."""

    receipt: Receipt
    task_id: str
    task: Task | None


class BuryEntry(Struct, frozen=True, kw_only=True):
    """Move an entry that names no task to the dead letters."""

    fact: EntryFact


class Forget(Struct, frozen=True):
    """Take an id out of schedule and claims whose task is, at this version, not waiting there."""

    task_id: TaskId
    version: Version


class HandBack(Struct, frozen=True):
    """Let the next worker of the queue take an entry over; *owner* has it now, or nobody."""

    receipt: Receipt
    owner: WorkerId | None


class Register(Struct, frozen=True):
    """Make a queue known, with its groups."""

    queue: QueueName


class Rewind(Struct, frozen=True):
    """Let the groups of these priorities read on after the last entry that somebody owns."""

    queue: QueueName
    priorities: Sequence[int]


class DropConsumers(Struct, frozen=True):
    """Remove the consumers of a queue that own nothing and are no worker's."""

    queue: QueueName


class RewriteKey(Struct, frozen=True, kw_only=True):
    """Put *record* under an idempotency key in place of *text*, '' being nothing; None takes that away."""

    queue: QueueName
    key: str
    text: str
    record: IdempotencyRecord | None
    lifetime: timedelta


class Limit(Struct, frozen=True):
    """Give a name without one a lifetime."""

    name: str
    lifetime: timedelta


class Shorten(Struct, frozen=True):
    """Let a name expire after *lifetime* at the latest."""

    name: str
    lifetime: timedelta


class Prolong(Struct, frozen=True):
    """Let a name live longer while the task that it is about is at this version."""

    name: str
    lifetime: timedelta
    task_id: TaskId
    version: Version


class Persist(Struct, frozen=True):
    """Take a name's lifetime away."""

    name: str


class Recount(Struct, frozen=True):
    """Note how many tasks of a queue are scheduled, where *fact* is still what is noted."""

    fact: CountFact


class Strike(Struct, frozen=True):
    """Take a name out of the list of queues that no queue can have."""

    name: str


class RemoveLetter(Struct, frozen=True):
    """Take out a dead letter that its task, at this version, does not name."""

    entry_id: EntryId
    task_id: TaskId
    version: Version


class Introduce(Struct, frozen=True):
    """Put a worker that has a heartbeat into the list of workers."""

    worker: WorkerId


Act: TypeAlias = (
    RemoveEntry
    | BuryEntry
    | Forget
    | HandBack
    | Register
    | Rewind
    | DropConsumers
    | RewriteKey
    | Limit
    | Shorten
    | Prolong
    | Persist
    | Recount
    | Strike
    | RemoveLetter
    | Introduce
)
