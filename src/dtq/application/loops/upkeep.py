"""The leader's sweeps: whatever is left behind is cleared away, and what waits long is kept."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from msgspec import Struct

from dtq.application.backoff import Backoff
from dtq.application.loops.strays import Strays
from dtq.application.nudge import StopSign
from dtq.domain.admission import DEFAULT_QUEUE
from dtq.domain.errors import OF_ONE_REQUEST, BrokerUnavailable, is_outage
from dtq.domain.events import EventType, worker_event
from dtq.domain.task import QueueName, WorkerId
from dtq.domain.text import class_name, text_of
from dtq.domain.workers import expires_in
from dtq.ports.broker import Schedule
from dtq.ports.environment import Chance, Clock, Ids
from dtq.ports.events import Observer
from dtq.ports.queues import Queues, Upkeep
from dtq.ports.workers import Workers

CLAIM_TERM: Final = timedelta(seconds=60)
"""After how long a task that a leader took on loan goes back to the schedule."""

_BATCH: Final = 100
_KEEP_ALIVE_EVERY: Final = timedelta(hours=1)
_KEEP_ALIVE_LIMIT: Final = 10_000
_REST: Final = timedelta(milliseconds=500)


class UpkeepParts(Struct, frozen=True, kw_only=True):
    """What the sweeps work with."""

    schedule: Schedule
    queues: Queues
    upkeep: Upkeep
    workers: Workers
    strays: Strays
    stop: StopSign
    clock: Clock
    ids: Ids
    chance: Chance
    observer: Observer
    is_leading: Callable[[], bool]


class Duty:
    """One sweep and its turns."""

    def __init__(self, name: str, sweep: Callable[[], Awaitable[None]], *, every: timedelta, backoff: Backoff) -> None:
        self.name = name
        self.sweep = sweep
        self.every = every.total_seconds()
        self.backoff = backoff
        self.next_at = float("-inf")


class Sweeps:
    """Does whatever sweep is due while this worker leads; one ``step`` at a time."""

    def __init__(self, parts: UpkeepParts, *, heartbeat_interval: timedelta, keep_alive_after: timedelta) -> None:
        self._parts = parts
        self._silence = expires_in(heartbeat_interval)
        self._keep_alive_after = keep_alive_after
        self._missing_since: dict[WorkerId, float] = {}
        self._to_keep_alive: list[QueueName] = []
        self._keep_alive_cursor = ""
        self._keep_alive_at = float("-inf")
        turns = (
            ("claims", self._return_claims, timedelta(seconds=5)),
            ("workers", self._remove_workers, heartbeat_interval),
            ("strays", parts.strays.step, _REST),
            ("queues", self._clear_queues, timedelta(seconds=60)),
            ("marks", self._drop_marks, timedelta(seconds=60)),
            ("keep_alive", self._keep_alive, _REST),
        )
        self._duties = [Duty(name, sweep, every=every, backoff=Backoff(parts.chance)) for name, sweep, every in turns]

    async def step(self) -> None:
        """Do what is due, each sweep only while this worker leads, and rest.

        One that fails keeps none of the others from their turns. Raises BrokerUnavailable in an outage.
        """
        outage: BrokerUnavailable | None = None
        for duty in self._duties:
            now = self._parts.clock.monotonic()
            if not self._parts.is_leading() or self._parts.stop.is_raised():
                break
            if now >= duty.next_at:
                outage = await self._do(duty, now=now) or outage
        if outage is not None:
            raise outage
        await self._parts.stop.pause(_REST)

    async def _do(self, duty: Duty, *, now: float) -> BrokerUnavailable | None:
        """Do one sweep; return what ended it where that is an outage, which is not this sweep's own trouble."""
        try:
            await duty.sweep()
        except Exception as error:  # noqa: BLE001 - a sweep that ended the step would keep the later ones waiting
            if is_outage(error):
                return error
            told = {"error": class_name(error), "reason": text_of(error)}
            self._parts.observer.noticed("sweep_failed", sweep=duty.name, **told)
            duty.next_at = self._parts.clock.monotonic() + duty.backoff.pause().total_seconds()
            return None
        duty.backoff.reset()
        duty.next_at = now + duty.every
        return None

    async def _return_claims(self) -> None:
        now = self._parts.clock.now()
        while True:
            returned = await self._parts.schedule.return_stale(claimed_before=now - CLAIM_TERM, now=now, limit=_BATCH)
            if returned < _BATCH:
                return

    async def _remove_workers(self) -> None:
        """Tell of workers that fell silent, after everybody had the time to see them as stale."""
        parts = self._parts
        now = parts.clock.monotonic()
        silent = [worker for worker in await parts.workers.known() if await parts.workers.get(worker) is None]
        self._missing_since = {worker: self._missing_since.get(worker, now) for worker in silent}
        for worker, since in self._missing_since.items():
            if now - since < self._silence.total_seconds():
                continue
            at, event_id = parts.clock.now(), parts.ids.token()
            event = worker_event(EventType.WORKER_STALE, event_id=event_id, at=at, worker=worker, queue=None)
            if await parts.workers.remove(worker, event=event):
                parts.observer.happened(event)

    async def _clear_queues(self) -> None:
        """Remove the consumers of workers that are gone, and queues that nobody uses."""
        parts = self._parts
        known = await parts.workers.known()
        beats = [await parts.workers.get(worker) for worker in known]
        served = {DEFAULT_QUEUE} | {beat.queue for beat in beats if beat is not None}
        refused: BrokerUnavailable | None = None
        for queue in await parts.queues.names():
            try:
                await parts.upkeep.drop_consumers(queue, alive=known)
                if queue not in served and await parts.upkeep.retire(queue):
                    parts.observer.noticed("queue_retired", queue=queue)
            except OF_ONE_REQUEST as error:
                refused = error
        if refused is not None:
            raise refused

    async def _drop_marks(self) -> None:
        while await self._parts.upkeep.drop_marks(limit=_BATCH) == _BATCH:
            pass

    async def _keep_alive(self) -> None:
        """Go round the queues once in a while, a bounded part of the way at each step."""
        now = self._parts.clock.monotonic()
        if not self._to_keep_alive and now >= self._keep_alive_at:
            self._to_keep_alive = [*await self._parts.queues.names()]
            self._keep_alive_at = now + _KEEP_ALIVE_EVERY.total_seconds()
        since = self._parts.clock.now() - self._keep_alive_after
        for queue in self._to_keep_alive[:_BATCH]:
            try:
                self._keep_alive_cursor, _ = await self._parts.upkeep.keep_alive(
                    queue, cursor=self._keep_alive_cursor, waiting_since=since, limit=_KEEP_ALIVE_LIMIT
                )
            except OF_ONE_REQUEST:
                # a damaged queue is left out of this round, so that it keeps no other waiting
                self._keep_alive_cursor = ""
                self._to_keep_alive.remove(queue)
                raise
            if self._keep_alive_cursor:
                break
            self._to_keep_alive.remove(queue)
