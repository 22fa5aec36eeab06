"""What the contract suite needs of an adapter beyond its ports: time that moves, structures laid bare, and harm.

A third party's adapter is tested by the same suite: it offers an `OpenHarness` in a fixture `open_harness` of its own
and imports the test modules (test_third_adapter.py does so). A test never asks which backend it runs on.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Protocol

from dtq.domain.status import Place
from dtq.domain.task import QueueName, Receipt, TaskId
from dtq.ports.backend import Backend, BackendOptions


class Harness(Protocol):
    """One adapter over an empty broker of its own."""

    @property
    def backend(self) -> Backend:
        """The ports under test; ``backend.clock`` is the clock that `advance` moves."""
        ...

    @property
    def options(self) -> BackendOptions:
        """What the backend was made with."""
        ...

    async def advance(self, by: timedelta) -> None:
        """Let time pass for whatever the backend times: the clock, idle times, lifetimes, due times, locks.

        What waits on the backend's clock has had its turn afterwards. Real time may pass besides.
        """
        ...

    async def rewind(self) -> None:
        """Make held entries look as if their owners had just been heard of."""
        ...

    async def census(self) -> Mapping[Place, set[TaskId]]:
        """Tell which tasks each structure holds, read from the structures and not from the records.

        SCHEDULE is the schedule with the claims, READY the entries without an owner, HELD those with one, DEAD the
        dead letters. A malformed entry counts under the task id it gives. NOWHERE is always empty.
        """
        ...

    async def duplicate(self, task_id: TaskId) -> Receipt:
        """Add one more entry of a stored task, as a failover may leave it; return its address.

        Its fields are those that an entry of the task as stored would have, whether or not the task has one.
        """
        ...

    async def forge(self, queue: QueueName, *, priority: int, fields: Mapping[str, str]) -> Receipt:
        """Add an entry as a stranger would; return its address."""
        ...

    async def evict(self, task_id: TaskId) -> None:
        """Make the record of a task vanish, and nothing else."""
        ...

    async def orphan(self, task_id: TaskId) -> None:
        """Take the task out of the place that holds it (entry with its owner, schedule, claims, dead letter)."""
        ...

    async def unname(self, task_id: TaskId) -> None:
        """Let the record of a dead-lettered task name no dead letter, and leave that where it is."""
        ...

    async def strip(self, task_id: TaskId, *, leaves: str | None = None) -> None:
        """Take the payload out of the record of a stored task, and nothing else; *leaves* is put in its place."""
        ...

    async def mistime(self, task_id: TaskId, *, at: datetime) -> None:
        """Let a scheduled task be due at *at*, or have been taken on loan then, whatever its record says."""
        ...

    async def lose_groups(self, queue: QueueName) -> None:
        """Make the backend forget who owns the entries of a queue, and that they were ever read."""
        ...

    async def disown(self, task_id: TaskId) -> None:
        """Make the backend forget who owns a task's entry, which was read, and stays where it is."""
        ...

    async def spoil(self, queue: QueueName, *, priority: int) -> None:
        """Make one priority of a queue unreadable, for good."""
        ...

    async def garble(self, task_id: TaskId) -> None:
        """Make the record of a stored task unreadable, for good."""
        ...

    async def garble_key(self, queue: QueueName, *, key: str) -> None:
        """Let something unreadable stand where the record of an idempotency key belongs."""
        ...

    async def lose_reply(self) -> None:
        """Let the next call of a broker method that writes be carried out, and its answer be lost."""
        ...

    async def stop_after(self, writes: int) -> None:
        """Let the next create or commit, of one change, stop before its write number *writes* + 1, if it has one.

        Armed for one call. A change that was stopped answers Broken.
        """
        ...

    async def fill_memory(self) -> None:
        """Leave no memory for new work, until `free_memory`."""
        ...

    async def free_memory(self) -> None:
        """Have memory again."""
        ...

    async def unbounded(self) -> Sequence[str]:
        """Name what the backend stores without a lifetime or a documented bound; the suite wants it empty."""
        ...


class OpenHarness(Protocol):
    """Makes harnesses over brokers that know nothing of each other."""

    def __call__(self, *, options: BackendOptions) -> AbstractAsyncContextManager[Harness]:
        """Open one; it cleans up behind itself."""
        ...
