"""The one loop that takes work: sweep, start, and wait only where nothing was found."""

import asyncio
import math
from collections import deque
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
from dtq.application.taking import Taken, Taking
from dtq.application.tenure import Tenure
from dtq.domain.errors import is_outage
from dtq.domain.task import QueueName, Receipt, WorkerId
from dtq.domain.text import class_name, text_of
from dtq.ports.broker import WorkQueue
from dtq.ports.events import Observer

WAIT: Final = timedelta(milliseconds=500)
"""How long one blocking read lasts. It is never cut short: a reply that nobody reads would strand its entries."""

PAUSE: Final = timedelta(milliseconds=500)
"""How long a worker rests where its queue is paused, unless it is told of the resume."""

LEAST_ABREAST: Final = 2
MOST_ABREAST: Final = 4
"""How many fetches are under way at once while there is more work than slots (ADR 105)."""

SHARE: Final = 16
"""How many slots there are at least for each fetch, where more than two are under way."""

_LONG: Final = timedelta(seconds=5)


class PollParts(Struct, frozen=True, kw_only=True):
    """What the poll loop works with."""

    broker: WorkQueue
    in_flight: InFlight
    leases: Leases
    reaping: Reaping
    starting: Starting
    settling: Settling
    taking: Taking
    hand_back: HandBack
    set_aside: SetAside
    tenure: Tenure
    nudge: Nudge
    stop: StopSign
    observer: Observer


class Poll:
    """Takes work for one worker, never more than it has empty slots; one ``step`` at a time."""

    def __init__(self, parts: PollParts, *, queue: QueueName, worker: WorkerId) -> None:
        self._parts = parts
        self._queue = queue
        self._worker = worker
        self._waiting: asyncio.Task[Sequence[Receipt]] | None = None
        # those that are sent without waiting for the one before, oldest first
        self._fetches: deque[asyncio.Task[Taken]] = deque()
        self._abreast = min(MOST_ABREAST, max(LEAST_ABREAST, parts.in_flight.capacity // SHARE))
        self._is_behind = False
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
        await self._land()
        if self._waiting is not None:
            await asyncio.wait({self._waiting})
            # what it read, or may have read before it failed, is found among the owned entries
            self._waiting.exception()
            self._waiting = None
        await self._recover()

    def drop(self) -> None:
        """Let go of whatever is under way: the worker ends now."""
        for request in (self._waiting, *self._fetches):
            if request is not None:
                request.cancel()

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

    async def _land(self) -> None:
        """Let the fetches end that are under way, and tell of those that fail; what they took is found when owned."""
        landed = await asyncio.gather(*self._fetches, return_exceptions=True)
        self._fetches.clear()
        for error in landed:
            if isinstance(error, BaseException):
                self._parts.observer.noticed("loop_failed", loop="poll", error=class_name(error), reason=text_of(error))
                if is_outage(error):
                    self.outage()

    async def _recover(self) -> None:
        """Win back what is running, run what was started unheard, and hand back the rest of what is owned."""
        parts = self._parts
        await self._land()
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
        if not self._fetches:
            woken = self._woken()
            if parts.stop.is_raised() or not parts.taking.has_room:
                await parts.hand_back.give(woken)
                return _LONG
            if self._is_dry and not woken and not parts.reaping.is_due:
                return self._await_work()
            if woken or not self._is_behind:
                taken = await parts.taking.take(woken, at_most=parts.in_flight.capacity)
                if taken.fetched.deliveries:
                    # what was started begins before this loop goes on; what ends at once is taken along by the next one
                    parts.settling.wait(parts.nudge.give)
                    await others_first()
                return self._next(taken)
        while self._may_send():
            self._send_one_of_several()
            # it is on its way before anybody looks how much room it leaves
            await others_first()
        return self._next(await self._fetches.popleft())

    def _may_send(self) -> bool:
        """Tell whether to send one more fetch beside those under way; not before what has come is dealt with."""
        waiting, fetches = self._waiting, self._fetches
        has_news = (waiting is not None and waiting.done()) or (fetches and fetches[0].done())
        return self._is_behind and not has_news and len(fetches) < self._abreast and self._parts.taking.has_room

    def _send_one_of_several(self) -> None:
        """Have one more fetch under way, for its share of the slots."""
        parts = self._parts
        # what ends from now on is taken along by the next one
        parts.settling.wait(parts.nudge.give)
        share = math.ceil(parts.in_flight.capacity / self._abreast)
        self._fetches.append(asyncio.create_task(parts.taking.take(at_most=share), name="take"))

    def _next(self, taken: Taken) -> timedelta | None:
        parts, fetched = self._parts, taken.fetched
        self._is_behind = not taken.is_whole
        if fetched.paused:
            parts.reaping.ask()
        if fetched.faults:
            parts.observer.noticed("sweep_incomplete", queue=self._queue, reason="; ".join(fetched.faults))
            self._is_doubted = True
        if self._fetches or parts.stop.is_raised():
            return None
        if fetched.paused:
            return PAUSE
        if fetched.faults:
            return None if fetched.deliveries else PAUSE
        if fetched.deliveries or fetched.unreadable or not taken.is_whole:
            return None
        if not taken.is_reaping:
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
