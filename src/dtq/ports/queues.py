"""Queues as a whole."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from dtq.domain.audit import AuditEntry
from dtq.domain.events import Event
from dtq.domain.task import QueueName, Receipt, Task


class QueueStats(Struct, frozen=True, kw_only=True):
    """Exact figures of one queue. ``depth`` counts waiting and running entries, ``pending`` those that are owned."""

    queue: QueueName
    depth: int
    pending: int
    paused: bool
    retry_scheduled: int


class Queues(Protocol):
    """What is known of queues, and the switch that pauses one."""

    async def register(self, queue: QueueName) -> None:
        """Make the queue known and ready to be read; repeatable."""
        ...

    async def names(self) -> Sequence[QueueName]:
        """Return the known queues in alphabetical order."""
        ...

    async def stats(self, queue: QueueName) -> QueueStats:
        """Return the figures of *queue*, read in one step; an unknown queue is empty."""
        ...

    async def pause(self, queue: QueueName, *, audit: AuditEntry, event: Event) -> None:
        """Let nothing new start in *queue*, which becomes known; audit entry and event are written in the same step.

        Repeatable.
        """
        ...

    async def resume(self, queue: QueueName, *, audit: AuditEntry, event: Event) -> None:
        """Let work start again; audit entry and event are written in the same step. Repeatable."""
        ...

    async def undelivered(self, queue: QueueName, *, limit: int) -> Sequence[Task | Receipt]:
        """Return up to *limit* entries that no worker has read, oldest of the highest priority first.

        A live task's own entry comes back as its task, without payload; any other as its receipt.
        """
        ...

    async def drop(self, receipts: Collection[Receipt]) -> int:
        """Remove entries that no worker has read and that are no live task's own; return how many."""
        ...


class Upkeep(Protocol):
    """The leader's sweeps: each is bounded, repeatable, and takes nothing that is in use."""

    async def strays(self, cursor: str, *, limit: int) -> tuple[str, Sequence[Task]]:
        """Look at about *limit* stored tasks from *cursor* ('' begins); return the next cursor ('' ends) and strays.

        A stray is a task that is alive and in no place. A call names it once; a later one may name it again where much
        is stored or removed meanwhile.
        """
        ...

    async def keep_alive(
        self, queue: QueueName, *, cursor: str, waiting_since: datetime, limit: int
    ) -> tuple[str, int]:
        """Look at up to *limit* entries older than *waiting_since* from *cursor* ('' begins), and renew their tasks.

        Each live task and its own idempotency record get the lifetimes that a change would give them now. Returns the
        next cursor ('' ends) and how many were renewed.
        """
        ...

    async def drop_consumers(self, queue: QueueName, *, alive: Collection[str]) -> int:
        """Remove the queue's consumers that own nothing and are not *alive*; return how many."""
        ...

    async def retire(self, queue: QueueName) -> bool:
        """Forget a queue that has no entry, no scheduled task and no pause, in one step; return whether it did."""
        ...

    async def drop_marks(self, *, limit: int) -> int:
        """Remove up to *limit* cancel marks that no entry can need any more; return how many."""
        ...
