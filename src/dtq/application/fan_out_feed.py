"""The one subscription of a process, and the pace at which its events reach the clients."""

import asyncio
from collections.abc import AsyncIterator
from contextvars import Context
from datetime import timedelta
from typing import Final

from dtq.application.fan_out_channels import Channels
from dtq.application.loops.supervise import Supervisor
from dtq.application.nudge import Nudge, StopSign
from dtq.domain.errors import BrokerUnavailable
from dtq.domain.events import Event
from dtq.domain.text import class_name, text_of
from dtq.ports.environment import Chance, Clock
from dtq.ports.events import EventBus, Observer

GATHER: Final = timedelta(milliseconds=10)
"""How long events are gathered after some were passed on: waking a thousand clients for each one would cost more."""

MAX_BLOCK: Final = 250
"""How many events are passed on at once, at most; never more than a quarter of a client's buffer."""

PATIENCE: Final = timedelta(milliseconds=20)
"""How long a block waits for clients that keep up and have no room: a burst is no reason to let them lose events."""

_LOOK_AGAIN: Final = timedelta(milliseconds=5)
_LASTING: Final = timedelta(seconds=5)
"""A subscription that held so long is renewed at once; a shorter one only after a pause."""


class Feed:
    """Keeps a subscription up from ``start`` to ``stop``, and gives *channels* what it hears."""

    def __init__(
        self, events: EventBus, *, channels: Channels, clock: Clock, chance: Chance, observer: Observer, buffer: int
    ) -> None:
        self.is_live = False
        self._events = events
        self._channels = channels
        self._clock = clock
        self._observer = observer
        self._block = max(1, min(MAX_BLOCK, buffer // 4))
        self._pending: list[Event] = []
        self._news = asyncio.Event()
        self._passed = asyncio.Event()
        self._full = Nudge(clock)
        self._supervisor = Supervisor(stop=StopSign(clock), chance=chance, observer=observer, on_outage=lambda: None)
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Subscribe, again and again if need be."""
        loops = {"events": self._listen, "fan_out": self._pass_on}
        self._tasks = [
            # a context of its own: the client that happens to come first is not what its log lines are about
            asyncio.create_task(self._supervisor.run(step, name=name), name=name, context=Context())
            for name, step in loops.items()
        ]

    def stop(self) -> None:
        """Let go of the subscription; what was heard and not yet passed on is passed on."""
        self._flush()
        # clients that come from now on are another feed's
        self.is_live = False
        for task in self._tasks:
            task.cancel()

    async def stopped(self) -> None:
        """Return when the subscription is let go of."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _listen(self) -> None:
        begun_at = float("inf")
        try:
            async with self._events.subscribe() as events:
                begun_at = self._clock.monotonic()
                self._begin()
                await self._hear_all(events)
        except BrokerUnavailable as error:
            if self._clock.monotonic() - begun_at < _LASTING.total_seconds():
                raise
            self._observer.noticed("events_interrupted", error=class_name(error), reason=text_of(error))
        finally:
            self._interrupt()

    def _begin(self) -> None:
        self.is_live = True
        for tap in self._channels.taps():
            tap.begin(sequence=self._channels.next_sequence())

    def _interrupt(self) -> None:
        if self.is_live:
            self._flush()
            self.is_live = False
            for tap in self._channels.taps():
                tap.interrupt(sequence=self._channels.next_sequence())

    async def _hear_all(self, events: AsyncIterator[Event]) -> None:
        async for event in events:
            await self._hear(event)
        raise BrokerUnavailable("the broker's events have ended")

    async def _hear(self, event: Event) -> None:
        self._pending.append(event)
        self._news.set()
        # what is not heard yet waits in the broker, which has more room for it than this process
        while len(self._pending) >= self._block:
            self._full.give()
            self._passed.clear()
            await self._passed.wait()

    async def _pass_on(self) -> None:
        await self._news.wait()
        self._news.clear()
        await self._wait_for_room()
        is_burst = len(self._pending) >= self._block
        self._flush()
        if is_burst:
            # the clients' turn: what was passed on is to be on its way before more comes
            await self._clock.sleep(timedelta())
        else:
            await self._full.wait(at_most=GATHER)

    async def _wait_for_room(self) -> None:
        waited = timedelta()
        while waited < PATIENCE and self._is_crowded():
            await self._clock.sleep(_LOOK_AGAIN)
            waited += _LOOK_AGAIN

    def _is_crowded(self) -> bool:
        number = len(self._pending)
        return any(tap.is_crowded_by(number) for tap in self._channels.taps())

    def _flush(self) -> None:
        pending, self._pending = self._pending, []
        self._channels.pass_on(pending)
        self._passed.set()
