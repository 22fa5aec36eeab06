"""The one loop that takes work: sweep, start, and wait only where nothing was found."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from msgspec import Struct

from dtq.application.hand_back import HandBack
from dtq.application.in_flight import InFlight
from dtq.application.leases import Leases
from dtq.application.nudge import Nudge, StopSign, others_first
from dtq.application.reaping import Reaping
from dtq.application.set_aside import SetAside
from dtq.application.settling import Settling
from dtq.application.starting import Starting
from dtq.application.tenure import Tenure
from dtq.domain.change import Change
from dtq.domain.task import LeaseToken, QueueName, Receipt, WorkerId
from dtq.ports.answers import Applied
from dtq.ports.broker import Delivery, Fetch, WorkQueue
from dtq.ports.environment import Clock
from dtq.ports.events import Observer

WAIT: Final = timedelta(milliseconds=500)
"""How long one blocking read lasts. It is never cut short: a reply that nobody reads would strand its entries."""

PAUSE: Final = timedelta(milliseconds=500)
"""How long a worker rests where its queue is paused, unless it is told of the resume."""

_LONG: Final = timedelta(seconds=5)


class PollParts(Struct, frozen=True, kw_only=True):
    """What the poll loop works with."""

    broker: WorkQueue
    in_flight: InFlight
    leases: Leases
    reaping: Reaping
    starting: Starting
    settling: Settling
    hand_back: HandBack
    set_aside: SetAside
    tenure: Tenure
    nudge: Nudge
    stop: StopSign
    clock: Clock
    observer: Observer


class _Swept(Struct, frozen=True):
    """What a sweep brought, what of it runs, what is to be started, and whether it took all that it could have."""

    fetched: Fetch
    begun: Sequence[Delivery]
    deliveries: Sequence[Delivery]
    is_whole: bool


class Poll:
    """Takes work for one worker, never more than it has empty slots; one ``step`` at a time."""

    def __init__(self, parts: PollParts, *, queue: QueueName, worker: WorkerId) -> None:
        self._parts = parts
        self._queue = queue
        self._worker = worker
        self._waiting: asyncio.Task[Sequence[Receipt]] | None = None
        self._is_dry = False
        self._is_doubted = False
        # true at first: a worker of this id may have lived before, and left entries behind
        self._is_stranded = True

    def outage(self) -> None:
        """Take note that the broker was out of reach: the next step looks at what is owned before it takes more."""
        self._parts.reaping.outage()
        self._is_doubted = True
        self._parts.nudge.give()

    async def step(self) -> None:
        """Sweep once, start what that brings, and rest where it brings nothing. Raises WorkerReplaced."""
        settling = self._parts.settling
        try:
            rest = await self._work()
            if rest is not None and not self._parts.stop.is_raised():
                if self._parts.in_flight.free or settling.leases:
                    # nobody comes soon to take them along
                    settling.go()
                await self._parts.nudge.wait(at_most=rest)
        except (Exception, asyncio.CancelledError):
            settling.go()
            raise
        if self._parts.stop.is_raised():
            settling.go()

    async def finish(self) -> None:
        """Let the blocking read end, after the last step, and hand back whatever is owned and not being run."""
        if self._waiting is not None:
            await asyncio.wait({self._waiting})
            # what it read, or may have read before it failed, is found among the owned entries
            self._waiting.exception()
            self._waiting = None
        await self._recover()

    def drop(self) -> None:
        """Let go of the blocking read: the worker ends now."""
        if self._waiting is not None:
            self._waiting.cancel()

    async def _work(self) -> timedelta | None:
        """Look at what is owned, if that is in doubt, and sweep; return what the sweep returns."""
        await self._parts.tenure.ensure()
        if self._is_stranded or self._is_doubted:
            self._parts.settling.go()
            self._is_doubted = False
            self._is_stranded = True
            await self._recover()
        # whatever stops the sweep half-way leaves entries that are owned and not started
        self._is_stranded = True
        rest = await self._sweep()
        self._is_stranded = False
        return rest

    async def _recover(self) -> None:
        """Win back what is running, run what was started unheard, and hand back the rest of what is owned."""
        parts = self._parts
        if self._waiting is not None and self._waiting.done() and self._waiting.exception() is not None:
            # what it may have read is found among the owned entries
            self._waiting = None
        await parts.leases.extend_all()
        await parts.starting.resolve(self._queue)
        running = {hold.lease.receipt for hold in parts.in_flight.holds}
        await parts.hand_back.give_all_but(running.union(parts.set_aside.receipts))
        parts.reaping.recovered()
        self._is_dry = False

    async def _sweep(self) -> timedelta | None:
        """Take and start work; return for how long to rest, or None where the next sweep is to follow at once."""
        parts = self._parts
        woken = self._woken()
        room = parts.in_flight.free_without(parts.settling.leases)
        if room == 0 or parts.stop.is_raised():
            await parts.hand_back.give(woken)
            return _LONG
        is_reaping = parts.reaping.is_due
        if self._is_dry and not woken and not is_reaping:
            return self._await_work()
        swept = await self._fetch(woken, is_reaping=is_reaping)
        if parts.stop.is_raised():
            # nothing starts any more: what was taken is handed back by finish()
            return None
        if woken:
            taken = [one.receipt for one in (*swept.begun, *swept.deliveries)]
            taken += [one.receipt for one in swept.fetched.unreadable]
            await parts.hand_back.give(set(woken).difference(taken))
        if swept.deliveries:
            await parts.starting.start(swept.deliveries)
        if swept.deliveries or swept.begun:
            # what was started begins before this loop goes on, and what ends at once is taken along by the next fetch
            parts.settling.wait(parts.nudge.give)
            await others_first()
        return self._next(swept, is_reaping=is_reaping)

    async def _fetch(self, woken: Sequence[Receipt], *, is_reaping: bool) -> _Swept:
        parts = self._parts
        asked_at = parts.clock.monotonic()
        room = 0

        async def send(ends: Sequence[Change]) -> Fetch:
            nonlocal room
            # each that is recorded makes room for one
            limit = parts.in_flight.free_without(_leases(ends)) - len(ends)
            fetched = await parts.broker.fetch(
                self._queue,
                worker=self._worker,
                limit=limit,
                reap_idle=parts.reaping.idle if is_reaping else None,
                held=woken,
                after=ends,
                offers=parts.starting.offer(max(0, limit + len(ends))),
            )
            room = limit + sum([isinstance(answer, Applied) for answer in fetched.answers])
            return fetched

        fetched = await parts.settling.take_along(send)
        parts.starting.begin(fetched)
        parts.set_aside.add(fetched.unreadable)
        is_whole = len(fetched.deliveries) + len(fetched.unreadable) < room
        begun = [one for one in fetched.deliveries if one.started is not None]
        deliveries = [
            one for one in fetched.deliveries if one.started is None and not parts.in_flight.owns(one.receipt)
        ]
        if is_reaping:
            parts.reaping.done(
                is_whole=is_whole,
                has_found=bool(fetched.unreadable)
                or any(one.task is not None and one.task.lease is not None for one in deliveries),
            )
        if parts.reaping.observe(fetched.now, asked_at=asked_at):
            parts.observer.noticed("clock_jumped", queue=self._queue)
            # their owners may be alive, and only seem silent: they win these entries back by their next extension
            deliveries = [one for one in deliveries if one.task is None or one.task.lease is None]
        return _Swept(fetched, begun, deliveries, is_whole)

    def _next(self, swept: _Swept, *, is_reaping: bool) -> timedelta | None:
        parts, fetched = self._parts, swept.fetched
        if fetched.paused:
            parts.reaping.ask()
            return PAUSE
        if fetched.faults:
            parts.observer.noticed("sweep_incomplete", queue=self._queue, reason="; ".join(fetched.faults))
            self._is_doubted = True
            return None if fetched.deliveries else PAUSE
        if fetched.deliveries or fetched.unreadable or not swept.is_whole:
            return None
        if not is_reaping:
            parts.reaping.ask()
            return None
        self._is_dry = True
        return self._await_work()

    def _await_work(self) -> timedelta:
        """Have a blocking read under way, and rest until it ends, or until reaping is due."""
        parts = self._parts
        if self._waiting is None:
            self._waiting = asyncio.create_task(self._wait(), name="wait")
        return parts.reaping.due_in

    async def _wait(self) -> Sequence[Receipt]:
        try:
            return await self._parts.broker.wait(self._queue, worker=self._worker, timeout=WAIT)
        finally:
            # whoever it wakes has its turn when this has ended
            self._parts.nudge.give()

    def _woken(self) -> Sequence[Receipt]:
        """Return what the blocking read brought, if it has ended."""
        waiting = self._waiting
        if waiting is None or not waiting.done():
            return ()
        self._waiting = None
        woken = waiting.result()
        self._is_dry = self._is_dry and not woken
        return woken


def _leases(ends: Sequence[Change]) -> Sequence[LeaseToken]:
    return [change.before.lease for change in ends if change.before is not None and change.before.lease is not None]
