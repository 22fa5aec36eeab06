"""The first and the last word of a worker."""

from collections.abc import Iterator
from datetime import timedelta

from msgspec.structs import replace

from dtq.application.handover import Handover, sign_of_life
from dtq.application.settings import WorkerSettings
from dtq.domain.errors import DtqError
from dtq.domain.events import Event, EventType, worker_event
from dtq.domain.timing import CLOCK_TOLERANCE
from dtq.domain.workers import Heartbeat, WorkerStatus, expires_in
from dtq.ports.backend import Backend
from dtq.ports.environment import Ids, ServerFacts
from dtq.ports.events import Observer


class WorkerIdInUse(DtqError):
    """Another worker of this id is alive."""

    code = "WORKER_ID_IN_USE"


class WorkerReplaced(WorkerIdInUse):
    """Another worker has taken this one's id, since this one gave no sign of life for too long."""


class Presence:
    """Announces that a worker begins, that it lives, and that it has stopped; it is the worker's tenure of its id."""

    def __init__(
        self, backend: Backend, *, settings: WorkerSettings, handover: Handover, ids: Ids, observer: Observer
    ) -> None:
        self._handover = handover
        self._lifetime = expires_in(settings.heartbeat_interval)
        self._backend = backend
        self._settings = settings
        self._ids = ids
        self._observer = observer
        # kept for the repeats: another start time or life would be another worker
        self._first: Heartbeat | None = None

    async def enter(self, task_types: tuple[str, ...]) -> tuple[Heartbeat, ServerFacts]:
        """Register the worker and its queue; may be repeated after a lost reply.

        Raises UnsuitableBroker where the server lacks what dtq needs, and WorkerIdInUse.
        """
        await self._backend.server.prepare()
        facts = await self._backend.server.inspect()
        # what makes the API unready is for operators to mend; a worker that stopped for it would strand accepted work
        for warning in (*facts.problems, *facts.warnings, *_clock_warnings(facts.host_offset)):
            self._observer.noticed("server_warning", warning=warning)
        heartbeat = self._first_heartbeat(task_types)
        asked_at = self._backend.clock.monotonic()
        if not await self._backend.workers.announce(heartbeat, expires_in=self._lifetime):
            raise WorkerIdInUse(
                f"a worker {heartbeat.worker_id} is alive; stop it, or wait {self._lifetime} if it was killed"
            )
        self._handover.announced_at = asked_at
        await self._backend.queues.register(self._settings.queue)
        await self._compare_with_peers(heartbeat)
        event = self._event(EventType.WORKER_STARTED)
        await self._backend.events.publish(event)
        self._observer.happened(event)
        return heartbeat, facts

    async def ensure(self) -> None:
        """Return at once while the last sign of life lasts; else give one. Raises WorkerReplaced."""
        if self._backend.clock.monotonic() >= self._handover.announced_at + self._lifetime.total_seconds():
            await self.renew()

    async def renew(self) -> None:
        """Give a sign of life now. Raises WorkerReplaced."""
        asked_at, at = self._backend.clock.monotonic(), self._backend.clock.now()
        sign = sign_of_life(self._first_heartbeat(()), self._handover.condition, at=at)
        if not await self._backend.workers.announce(sign, expires_in=self._lifetime):
            self._handover.on_replaced()
            raise self.replaced()
        self._handover.announced_at = asked_at

    def replaced(self) -> WorkerReplaced:
        """Return the error that tells why this worker ends."""
        return WorkerReplaced(
            f"another worker {self._settings.worker_id} has begun, since this one gave no sign of life for"
            f" {self._lifetime}; it ends, and leaves everything to the other one"
        )

    async def leave(self) -> None:
        """Forget the worker and announce that it has stopped, unless another one has its id by now."""
        event = self._event(EventType.WORKER_STOPPED)
        if await self._backend.workers.retire(self._first_heartbeat(()), event=event):
            self._observer.happened(event)

    def _first_heartbeat(self, task_types: tuple[str, ...]) -> Heartbeat:
        now = self._backend.clock.now()
        if self._first is None:
            self._first = Heartbeat(
                worker_id=self._settings.worker_id,
                hostname=self._settings.hostname,
                started_at=now,
                last_heartbeat=now,
                queue=self._settings.queue,
                concurrency=self._settings.concurrency,
                status=WorkerStatus.STARTING,
                task_types=task_types,
                visibility_timeout=self._settings.visibility_timeout,
                life=self._ids.token(),
            )
        return replace(self._first, last_heartbeat=now)

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


def _clock_warnings(ahead: timedelta) -> Iterator[str]:
    if abs(ahead) > CLOCK_TOLERANCE:
        side = "ahead of" if ahead > timedelta() else "behind"
        yield f"the broker's clock is {abs(ahead).total_seconds():.1f} s {side} this host's"
