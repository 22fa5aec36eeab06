"""What a client needs of the way to the tasks."""

from collections.abc import Sequence
from typing import Protocol

from dtq.domain.errors import DtqError
from dtq.entrypoints.client.results import Cancelled, Submission, Submitted, TaskState


class Transport(Protocol):
    """One way to the tasks. Every call raises a DtqError where it is refused or cannot be done."""

    async def submit(self, submission: Submission) -> Submitted:
        """Submit a task, once, however often the request has to be sent."""
        ...

    async def submit_many(self, submissions: Sequence[Submission]) -> Sequence[Submitted | DtqError]:
        """Submit up to 1,000 tasks; each gets the answer it would get alone, errors as values."""
        ...

    async def get(self, task_id: str) -> TaskState:
        """Return a task as it is."""
        ...

    async def ended(self, task_id: str, *, within: float) -> TaskState:
        """Return a task when it has ended, or as it is after *within* seconds, at most 60."""
        ...

    async def cancel(self, task_id: str) -> Cancelled:
        """Cancel a waiting task. Raises CancelRequested for one that runs, and has been asked to stop."""
        ...

    async def close(self) -> None:
        """Let go of every connection."""
        ...
