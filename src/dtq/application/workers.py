"""What operators see of workers."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from msgspec import Struct

from dtq.application.abreast import abreast
from dtq.application.patience import Patience
from dtq.application.requests import limit_problem, refuse
from dtq.domain.errors import WorkerNotFound
from dtq.domain.task import QueueName, WorkerId
from dtq.domain.text import clean
from dtq.domain.workers import WORKER_ID_PATTERN, Heartbeat, WorkerStatus, is_active, liveness
from dtq.ports.environment import Clock
from dtq.ports.workers import Workers

_SHOWN = 64


class WorkerView(Struct, frozen=True, kw_only=True):
    """A worker as an observer sees it; one whose heartbeat has expired is stale, and nothing else is known of it."""

    worker_id: WorkerId
    status: WorkerStatus
    heartbeat: Heartbeat | None


class WorkerService:
    """Looking at workers. Each call answers within some 4 seconds, or raises BrokerUnavailable."""

    def __init__(self, workers: Workers, *, clock: Clock, heartbeat_interval: timedelta) -> None:
        self._workers = workers
        self._clock = clock
        self.heartbeat_interval = heartbeat_interval

    async def all(self, *, limit: int) -> Sequence[WorkerView]:
        """Return up to *limit* (1..500) workers in the order of their ids. Raises InvalidRequest."""
        refuse([limit_problem(limit)])
        patience = Patience(self._clock)
        known = await patience.read(self._workers.known)
        return await self._views(known[:limit], patience)

    async def get(self, worker_id: str) -> WorkerView:
        """Return one worker. Raises WorkerNotFound."""
        if not WORKER_ID_PATTERN.fullmatch(worker_id):
            raise WorkerNotFound(clean(worker_id, limit=_SHOWN))
        patience = Patience(self._clock)
        (view,) = await self._views([WorkerId(worker_id)], patience)
        if view.heartbeat is None and worker_id not in await patience.read(self._workers.known):
            raise WorkerNotFound(worker_id)
        return view

    async def active(self, queue: QueueName) -> int:
        """Return how many workers serve *queue*; approximate by what happened since their last heartbeats."""
        heard, now = await self.heard(), self._clock.now()
        living = [one for one in heard if is_active(liveness(one, now=now, interval=self.heartbeat_interval))]
        return sum(one.queue == queue for one in living)

    async def heard(self, *, patience: Patience | None = None) -> Sequence[Heartbeat]:
        """Return every sign of life that is stored; *patience* is that of the use case which this is a part of."""
        patience = patience or Patience(self._clock)
        views = await self._views(await patience.read(self._workers.known), patience)
        return [view.heartbeat for view in views if view.heartbeat is not None]

    async def _views(self, ids: Sequence[WorkerId], patience: Patience) -> list[WorkerView]:
        async def heard(worker_id: WorkerId) -> Heartbeat | None:
            return await patience.read(partial(self._workers.get, worker_id))

        heartbeats = await abreast(ids, heard)
        now = self._clock.now()
        return [
            WorkerView(
                worker_id=worker_id,
                status=liveness(heartbeat, now=now, interval=self.heartbeat_interval),
                heartbeat=heartbeat,
            )
            for worker_id, heartbeat in zip(ids, heartbeats, strict=True)
        ]
