"""A fan-out on a broker in memory, whose line a test may cut, and a clock that is moved by hand."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from dtq.adapters.memory import ManualClock, State, backend_of
from dtq.adapters.memory.clock import settle
from dtq.application.fan_out import FanOut
from dtq.application.fan_out_feed import GATHER
from dtq.application.fan_out_tap import Control, ControlKind, Message, Tap
from dtq.domain.errors import BrokerUnavailable
from dtq.domain.events import Event
from dtq.ports.backend import BackendOptions
from dtq.ports.events import EventBus
from tests.application.stage import MiddleChance, Notes

PATIENT = timedelta(hours=1)
"""Longer than any test lets a client wait."""

SUBSCRIBED = ControlKind.SUBSCRIBED
INTERRUPTED = ControlKind.INTERRUPTED
GAP = ControlKind.GAP


def as_it_is(message: Message) -> Message:
    """The form that is no form."""
    return message


class Line:
    """The events of a broker, over a line that can be down, be cut and come back."""

    def __init__(self, bus: EventBus) -> None:
        self.is_down = False
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.subscriptions = 0
        self.open = 0
        self._bus = bus
        self._cut = asyncio.Event()

    def cut(self) -> None:
        """Lose every subscription that stands."""
        self._cut.set()
        self._cut = asyncio.Event()

    async def publish(self, event: Event) -> None:
        await self._bus.publish(event)

    @asynccontextmanager
    async def subscribe(self) -> AsyncIterator[AsyncIterator[Event]]:
        if self.is_down:
            raise BrokerUnavailable("the line is down")
        self.subscriptions += 1
        self.open += 1
        try:
            async with self._bus.subscribe() as events:
                yield self._until_cut(events, self._cut)
        finally:
            await self.may_end.wait()
            self.open -= 1

    async def _until_cut(self, events: AsyncIterator[Event], cut: asyncio.Event) -> AsyncIterator[Event]:
        end = asyncio.ensure_future(cut.wait())
        try:
            while True:
                event = asyncio.ensure_future(anext(events))
                await asyncio.wait({event, end}, return_when=asyncio.FIRST_COMPLETED)
                if end.done():
                    event.cancel()
                    raise BrokerUnavailable("the line was cut")
                yield event.result()
        finally:
            end.cancel()


class FanOutWorld:
    """A fan-out and everything around it."""

    def __init__(self, *, buffer: int = 1000, max_clients: int = 1000) -> None:
        self.clock = ManualClock()
        self.backend = backend_of(State(self.clock, options=BackendOptions()))
        self.line = Line(self.backend.events)
        self.notes = Notes()
        self.fan_out = FanOut(
            self.line,
            clock=self.clock,
            chance=MiddleChance(),
            observers=[self.notes],
            buffer=buffer,
            max_clients=max_clients,
        )

    async def publish(self, *events: Event) -> None:
        """Publish events to whoever listens by now, and let them come through."""
        await settle(turns=100)
        for event in events:
            await self.line.publish(event)
        await self.pass_time(2 * GATHER)

    async def pass_time(self, by: timedelta) -> None:
        """Move the clock, and let everything that follows from it happen."""
        await self.clock.advance(by)
        await settle(turns=100)


async def heard(tap: Tap[Message]) -> Sequence[Message]:
    """Everything that a client can take now."""
    await settle(turns=100)
    found: list[Message] = []
    while True:
        taking = asyncio.ensure_future(tap.take(at_most=PATIENT))
        await settle()
        if not taking.done():
            taking.cancel()
            return found
        found += taking.result()


def told(messages: Sequence[Message]) -> list[Event | ControlKind]:
    """Messages, with words about the stream as nothing but their kind."""
    return [message.control if isinstance(message, Control) else message for message in messages]
