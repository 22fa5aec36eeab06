"""Workers, their leader and their signals, in memory."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta

from dtq.adapters.memory.expiring import Expiring
from dtq.adapters.memory.state import EVENTS, Lead, State
from dtq.domain.events import Event
from dtq.domain.task import LeaseToken, QueueName, WorkerId
from dtq.domain.workers import Heartbeat
from dtq.ports.workers import Signal


class MemoryWorkers:
    """Signs of life in one process."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._heartbeats = Expiring[WorkerId, Heartbeat](state.clock)
        self._known: set[WorkerId] = set()

    async def announce(self, heartbeat: Heartbeat, *, expires_in: timedelta) -> bool:
        if self._is_anothers(heartbeat):
            return False
        self._heartbeats.put(heartbeat.worker_id, heartbeat, lifetime=expires_in)
        self._known.add(heartbeat.worker_id)
        return True

    async def get(self, worker: WorkerId) -> Heartbeat | None:
        return self._heartbeats.get(worker)

    async def known(self) -> Sequence[WorkerId]:
        return sorted(self._known)

    async def remove(self, worker: WorkerId, *, event: Event) -> bool:
        if worker not in self._known or self._heartbeats.get(worker) is not None:
            return False
        self._known.remove(worker)
        self._state.events.send(EVENTS, event)
        return True

    async def retire(self, heartbeat: Heartbeat, *, event: Event) -> bool:
        if self._is_anothers(heartbeat):
            return False
        self._known.discard(heartbeat.worker_id)
        self._heartbeats.remove(heartbeat.worker_id)
        self._state.events.send(EVENTS, event)
        return True

    def _is_anothers(self, heartbeat: Heartbeat) -> bool:
        stored = self._heartbeats.get(heartbeat.worker_id)
        return stored is not None and not stored.is_of_same_life(heartbeat)


class MemoryLeadership:
    """The lead in one process."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def acquire(self, token: LeaseToken, *, term: timedelta) -> bool:
        now, lead = self._state.clock.now(), self._state.lead
        if lead is not None and lead.token != token and lead.until > now:
            return False
        self._state.lead = Lead(token, now + term)
        return True

    async def resign(self, token: LeaseToken) -> bool:
        if not self._state.leads(token):
            return False
        self._state.lead = None
        return True


class MemorySignals:
    """Signals in one process."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def tell_worker(self, worker: WorkerId, signal: Signal) -> None:
        self._state.signals.send(_to_worker(worker), signal)

    async def tell_queue(self, queue: QueueName, signal: Signal) -> None:
        self._state.signals.send(_to_queue(queue), signal)

    def listen(self, worker: WorkerId, *, queue: QueueName) -> AbstractAsyncContextManager[AsyncIterator[Signal]]:
        return self._state.signals.listen((_to_worker(worker), _to_queue(queue)))


def _to_worker(worker: WorkerId) -> str:
    return f"worker {worker}"


def _to_queue(queue: QueueName) -> str:
    return f"queue {queue}"
