"""Events and the audit log, in memory."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import islice

from dtq.adapters.memory.state import EVENTS, State
from dtq.domain.audit import AuditEntry
from dtq.domain.events import Event


class MemoryEventBus:
    """Events in one process."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def publish(self, event: Event) -> None:
        self._state.events.send(EVENTS, event)

    def subscribe(self) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        return self._state.events.listen((EVENTS,))


class MemoryAuditLog:
    """The audit log in one process."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def recent(self, *, limit: int) -> Sequence[AuditEntry]:
        return list(islice(reversed(self._state.audit), limit))

    async def record(self, entry: AuditEntry) -> None:
        self._state.audit.append(entry)
