"""The first and the last word of a worker."""

from datetime import datetime

from dtq.application.settings import WorkerSettings
from dtq.domain.errors import DtqError
from dtq.domain.events import Event, EventType, worker_event
from dtq.domain.workers import Heartbeat, WorkerStatus, expires_in
from dtq.ports.backend import Backend
from dtq.ports.environment import Ids, ServerFacts
from dtq.ports.events import Observer


class WorkerIdInUse(DtqError):
    """Another worker of this id is alive."""

    code = "WORKER_ID_IN_USE"


class Presence:
    """Announces that a worker begins and that it has stopped."""

    def __init__(self, backend: Backend, *, settings: WorkerSettings, ids: Ids, observer: Observer) -> None:
        self._backend = backend
        self._settings = settings
        self._ids = ids
        self._observer = observer
        self._started_at: datetime | None = None

    async def enter(self, task_types: tuple[str, ...]) -> tuple[Heartbeat, ServerFacts]:
        """Register the worker and its queue; may be repeated after a lost reply.

        Raises UnsuitableBroker where the server lacks what dtq needs, and WorkerIdInUse.
        """
        await self._backend.server.prepare()
        facts = await self._backend.server.inspect()
        # what makes the API unready is for operators to mend; a worker that stopped for it would strand accepted work
        for warning in (*facts.problems, *facts.warnings):
            self._observer.noticed("server_warning", warning=warning)
        heartbeat = self._first_heartbeat(task_types)
        lifetime = expires_in(self._settings.heartbeat_interval)
        if not await self._backend.workers.register(heartbeat, expires_in=lifetime):
            raise WorkerIdInUse(
                f"a worker {heartbeat.worker_id} is alive; stop it, or wait {lifetime} if it was killed"
            )
        await self._backend.queues.register(self._settings.queue)
        await self._compare_with_peers(heartbeat)
        event = self._event(EventType.WORKER_STARTED)
        await self._backend.events.publish(event)
        self._observer.happened(event)
        return heartbeat, facts

    async def leave(self) -> None:
        """Forget the worker and announce that it has stopped."""
        event = self._event(EventType.WORKER_STOPPED)
        await self._backend.workers.retire(self._settings.worker_id, event=event)
        self._observer.happened(event)

    def _first_heartbeat(self, task_types: tuple[str, ...]) -> Heartbeat:
        now = self._backend.clock.now()
        if self._started_at is None:
            # kept for the repeats: another start time would be another worker
            self._started_at = now
        return Heartbeat(
            worker_id=self._settings.worker_id,
            hostname=self._settings.hostname,
            started_at=self._started_at,
            last_heartbeat=now,
            queue=self._settings.queue,
            concurrency=self._settings.concurrency,
            status=WorkerStatus.STARTING,
            task_types=task_types,
            visibility_timeout=self._settings.visibility_timeout,
        )

    async def _compare_with_peers(self, mine: Heartbeat) -> None:
        """Tell of peers that judge by another visibility timeout: the one with the shorter takes the other's work."""
        for worker in await self._backend.workers.known():
            peer = await self._backend.workers.get(worker)
            if peer is None or peer.queue != mine.queue or peer.visibility_timeout == mine.visibility_timeout:
                continue
            self._observer.noticed(
                "visibility_timeouts_differ",
                worker_id=worker,
                theirs=peer.visibility_timeout.total_seconds(),
                ours=mine.visibility_timeout.total_seconds(),
            )

    def _event(self, kind: EventType) -> Event:
        settings = self._settings
        at, event_id = self._backend.clock.now(), self._ids.token()
        return worker_event(kind, event_id=event_id, at=at, worker=settings.worker_id, queue=settings.queue)
