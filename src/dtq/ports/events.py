"""Telling the world."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from dtq.domain.audit import AuditEntry
from dtq.domain.change import Change
from dtq.domain.events import Event


class EventBus(Protocol):
    """Events as they happen. Best effort: a subscriber hears what is published while it listens."""

    async def publish(self, event: Event) -> None:
        """Publish an event that belongs to no change of a task."""
        ...

    def subscribe(self) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """Receive every event, each task's in the order of its changes, from the moment the context is entered."""
        ...


class AuditLog(Protocol):
    """What was done by whom. A deed that is one step writes its entry in that step, and not here."""

    async def recent(self, *, limit: int) -> Sequence[AuditEntry]:
        """Return up to *limit* entries, newest first, and pass over what no step and no refusal wrote."""
        ...

    async def record(self, entry: AuditEntry) -> None:
        """Append the entry of an act that was refused, or made of many steps. Runs when memory is full."""
        ...


class Observer(Protocol):
    """Watches what this process does: logs, metrics and test recorders are observers. Must not raise or block."""

    def committed(self, *changes: Change) -> None:
        """Take note of changes that this process made, in their order, once a change."""
        ...

    def happened(self, event: Event) -> None:
        """Take note of an event that belongs to no change."""
        ...

    def noticed(self, what: str, **details: str | float | bool | None) -> None:
        """Take note of something that operators should read: a fault, a retry, a dropped result."""
        ...
