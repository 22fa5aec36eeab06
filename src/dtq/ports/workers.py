"""Who works, who leads, and how workers are told things at once."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from dtq.domain.events import Event
from dtq.domain.task import LeaseToken, QueueName, TaskId, WorkerId
from dtq.domain.workers import Heartbeat


class Workers(Protocol):
    """Signs of life of workers; they expire by themselves."""

    async def announce(self, heartbeat: Heartbeat, *, expires_in: timedelta) -> bool:
        """Store a sign of life, the first or another, to be forgotten after *expires_in*. Runs when memory is full.

        False, and nothing written, if another of this id is alive: a stored heartbeat with another ``started_at`` or
        ``life``.
        """
        ...

    async def get(self, worker: WorkerId) -> Heartbeat | None:
        """Return a worker's last sign of life, or None where it has expired."""
        ...

    async def known(self) -> Sequence[WorkerId]:
        """Return every worker id that was announced and not removed, in alphabetical order."""
        ...

    async def remove(self, worker: WorkerId, *, event: Event) -> bool:
        """Forget a worker that fell silent; the one call that did so answers True and publishes *event*.

        Nothing happens while the worker's heartbeat is stored.
        """
        ...

    async def retire(self, heartbeat: Heartbeat, *, event: Event) -> bool:
        """Forget the worker that says goodbye, known by any of its heartbeats, and publish *event*.

        False, and nothing done, if another of this id is alive, that is one with another ``started_at`` or ``life``.
        """
        ...


class Leadership(Protocol):
    """The lock of the one scheduler. It may be lost at any time; what needs it asks for the token again."""

    async def acquire(self, token: LeaseToken, *, term: timedelta) -> bool:
        """Take the lead for *term* if nobody has it; True also where *token* has it already, which renews it."""
        ...

    async def resign(self, token: LeaseToken) -> bool:
        """Give the lead up if *token* has it; return whether it had."""
        ...


class SignalKind(StrEnum):
    """What a signal tells: look at your cancellations, or look for work again."""

    CANCEL = "cancel"
    WORK = "work"


class Signal(Struct, frozen=True, kw_only=True):
    """A hint that may be lost; every hint is also found out without it, only later."""

    kind: SignalKind
    task_id: TaskId | None = None


class Signals(Protocol):
    """Hints to workers. Best effort: a listener hears what is told while it listens."""

    async def tell_worker(self, worker: WorkerId, signal: Signal) -> None:
        """Send *signal* to one worker."""
        ...

    async def tell_queue(self, queue: QueueName, signal: Signal) -> None:
        """Send *signal* to all workers of a queue."""
        ...

    def listen(self, worker: WorkerId, *, queue: QueueName) -> AbstractAsyncContextManager[AsyncIterator[Signal]]:
        """Receive the signals to *worker* and to *queue*, in order, from the moment the context is entered."""
        ...
