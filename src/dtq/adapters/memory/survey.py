"""A look at everything at once, in memory."""

from dtq.adapters.memory.dead_letters import MemoryDeadLetters
from dtq.adapters.memory.queues import MemoryQueues
from dtq.adapters.memory.state import State
from dtq.adapters.memory.workers import MemoryWorkers
from dtq.ports.survey import QueueFigures, Survey


class MemorySurveyor:
    """Figures of one process."""

    def __init__(self, state: State, *, workers: MemoryWorkers) -> None:
        self._state = state
        self._queues = MemoryQueues(state)
        self._dead_letters = MemoryDeadLetters(state)
        self._workers = workers

    async def survey(self, *, limit: int) -> Survey:
        names = (await self._queues.names())[:limit]
        stats = [await self._queues.stats(name) for name in names]
        heartbeats = [await self._workers.get(worker) for worker in await self._workers.known()]
        return Survey(
            queues=[QueueFigures(queue=one.queue, depth=one.depth, pending=one.pending) for one in stats],
            scheduled=len(self._state.schedule),
            dead_letters=await self._dead_letters.count(),
            heartbeats=[heartbeat for heartbeat in heartbeats if heartbeat is not None],
        )
