"""Tasks that were given up, until an operator decides."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from dtq.domain.audit import AuditEntry
from dtq.domain.task import EntryId, Task, TaskId


class DeadLetter(Struct, frozen=True, kw_only=True):
    """One dead letter.

    ``task`` is the stored task with payload, or, where its record is gone, the one rebuilt from the letter's
    ``fields``; None where the letter is malformed.
    """

    entry_id: EntryId
    fields: Mapping[str, str]
    task: Task | None


class DeadLetters(Protocol):
    """The dead-letter stream, bounded in length. Requeue and discard are commits of the task store.

    A letter counts only if its task's record names it or is gone.
    """

    async def get(self, task_id: TaskId) -> DeadLetter | None:
        """Return the dead letter of a task, or None."""
        ...

    async def recent(self, *, limit: int) -> Sequence[DeadLetter]:
        """Return up to *limit* dead letters, newest first."""
        ...

    async def count(self) -> int:
        """Return how many entries the stream holds."""
        ...

    async def purge(self, *, audit: AuditEntry) -> int:
        """Remove every dead letter and return how many; the audit entry, with that count, is part of the step."""
        ...
