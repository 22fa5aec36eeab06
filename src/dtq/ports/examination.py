"""Looking at everything that is stored, and mending what no step of a task reaches."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Protocol

from dtq.domain.facts import CountFact, Denied, Fact
from dtq.domain.idempotency import IdempotencyRecord
from dtq.domain.task import EntryId, QueueName, Receipt, TaskId, Version, WorkerId


class Examiner(Protocol):
    """Facts of what is stored, and the small acts that mend. Each act is one atomic step, and repeatable."""

    def read(self, *, limit: int) -> AsyncIterator[Sequence[Fact | Denied]]:
        """Go through everything that is stored, in pages of about *limit* things.

        No page takes the server long, and between two of them anybody may pause. What stands still during the whole
        is in some page, an entry that is its task's own perhaps with that alone; where much is stored or removed
        meanwhile, it may be in two. Parts of a fact may be of different moments. What may not be read is told as
        Denied.
        """
        ...

    async def again(self, facts: Sequence[Fact]) -> Sequence[Fact | None]:
        """Read *facts* anew, each in one atomic step; None where it is gone, or its task has moved since."""
        ...

    async def rewrite_key(
        self, queue: QueueName, *, key: str, text: str, record: IdempotencyRecord | None, lifetime: timedelta
    ) -> bool:
        """Put *record*, or nothing, in the place of an idempotency record that is *text*; return whether it was.

        Where *text* is '' nothing may be stored under the key.
        """
        ...

    async def limit(self, name: str, *, lifetime: timedelta) -> bool:
        """Let a stored name expire after *lifetime* that would never; return whether this call did."""
        ...

    async def shorten(self, name: str, *, lifetime: timedelta) -> bool:
        """Let a stored name expire after *lifetime* that would later, or never; return whether this call did."""
        ...

    async def prolong(self, name: str, *, lifetime: timedelta, task_id: TaskId, version: Version) -> bool:
        """Let a stored name expire no earlier than after *lifetime*, if the task's stored version is *version*.

        Returns whether this call did.
        """
        ...

    async def persist(self, name: str) -> bool:
        """Let a stored name never expire; return whether this call did."""
        ...

    async def recount(self, fact: CountFact) -> bool:
        """Note ``counted`` as the number of a queue's scheduled tasks, if ``text`` is noted; return whether it was."""
        ...

    async def strike(self, name: str) -> bool:
        """Take a name out of the list of queues; return whether it was there."""
        ...

    async def rewind(self, queue: QueueName, *, priority: int) -> bool:
        """Let a group that has read beyond the end of its stream read on after the last entry that somebody owns.

        Returns whether this call did. Nothing that somebody owns is delivered again by it.
        """
        ...

    async def remove_letter(self, entry_id: EntryId, *, task_id: TaskId, version: Version) -> bool:
        """Remove a dead letter if the task's stored version is *version*; return whether this call did."""
        ...

    async def introduce(self, worker: WorkerId) -> bool:
        """Put a worker whose heartbeat is stored into the list of workers; return whether this call did."""
        ...

    async def offer(self, receipt: Receipt) -> bool:
        """Hand an entry back that was read and has no owner, as ``release`` does; return whether there was one."""
        ...
