"""What an examination finds, and what judging goes by."""

from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from dtq.domain.facts import Fact
from dtq.domain.task import QueueName, Task, TaskId
from dtq.domain.text import clean


class Kind(StrEnum):
    """What may be wrong, in the order in which it is repaired."""

    SERVER = "server_unsuitable"
    CLOCKS = "clocks_apart"
    WRONG_TYPE = "key_of_another_type"
    EXHAUSTED = "stream_exhausted"
    UNREADABLE = "record_unreadable"
    UNREGISTERED = "queue_not_registered"
    BAD_NAME = "queue_name_impossible"
    GROUP = "group_missing"
    AHEAD = "group_ahead"
    ORPHAN_ENTRY = "entry_without_record"
    HOLLOW_ENTRY = "entry_without_payload"
    SURPLUS_ENTRY = "entry_surplus"
    STRAY_MEMBER = "scheduled_in_vain"
    MISTIMED = "scheduled_at_another_time"
    HOMELESS = "task_without_home"
    ABANDONED = "task_abandoned"
    LETTER_MISSING = "dead_letter_missing"
    LETTER_SURPLUS = "dead_letter_surplus"
    KEY = "idempotency_record_wrong"
    LOCK = "lock_without_lifetime"
    ETERNAL = "key_without_lifetime"
    SHORT = "lifetime_too_short"
    FOREIGN = "key_unknown"
    HEARTBEAT = "worker_not_listed"
    CONSUMER = "consumer_without_worker"
    COUNT = "scheduled_count_wrong"


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that is wrong. ``subject`` names it among those of its kind; ``ripe_in`` is when it is believed."""

    kind: Kind
    subject: str
    detail: str
    fact: Fact | None = None
    task_id: TaskId | None = None
    queue: QueueName | None = None
    ripe_in: timedelta = timedelta()

    @property
    def own_name(self) -> str | None:
        """The subject, where it is more than the task or the queue."""
        name = shown(self.subject)
        return None if name in {self.task_id, self.queue} else name


class Bearings(Struct, frozen=True, kw_only=True):
    """What judging needs to know of the whole: the broker's time, the limits of ages, and which letters were purged.

    ``letters_kept_since`` is the moment since when dead letters cannot have been purged, ``swept_since`` that since
    when a worker lives that may lead and sweep; None where there is none.
    """

    now: datetime
    abandoned_after: timedelta
    handed_back: timedelta
    letters_kept_since: datetime
    swept_since: datetime | None = None


def shown(text: str) -> str:
    """Show what anybody may have written."""
    return clean(text, limit=100)


def of_fact(
    fact: Fact,
    kind: Kind,
    subject: str,
    detail: str,
    *,
    task_id: TaskId | None = None,
    queue: QueueName | None = None,
) -> Finding:
    """Return what is wrong with *fact*."""
    return Finding(kind=kind, subject=subject, detail=detail, fact=fact, task_id=task_id, queue=queue)


def of_task(fact: Fact, kind: Kind, task: Task, detail: str, *, subject: str = "") -> Finding:
    """Return what is wrong with *fact*, which is about *task*; that is its subject unless another is named."""
    return Finding(
        kind=kind,
        subject=subject or task.task_id,
        detail=detail,
        fact=fact,
        task_id=task.task_id,
        queue=task.queue,
    )
