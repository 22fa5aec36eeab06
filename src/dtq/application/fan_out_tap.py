"""One client's end of the fan-out: what it gets, and how that ends."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from enum import Enum, StrEnum
from typing import Final, Generic, TypeAlias, TypeVar

from msgspec import Struct

from dtq.application.fan_out_buffer import Block, Buffer, Item
from dtq.application.fan_out_filter import EventFilter
from dtq.domain.events import Event
from dtq.ports.environment import Clock

BATCH: Final = 32
"""How many messages a client is handed at once."""

MOVING: Final = timedelta(milliseconds=250)
"""A client that was handed something so lately is keeping up, and worth a moment's wait."""

T = TypeVar("T")


class ControlKind(StrEnum):
    """What a client is told beside events."""

    SUBSCRIBED = "subscribed"
    INTERRUPTED = "interrupted"
    GAP = "gap"
    HEARTBEAT = "heartbeat"


class Reason(StrEnum):
    """Why there is a gap."""

    BROKER_LOST = "broker_lost"
    SLOW_CLIENT = "slow_client"


class Control(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A word about the stream itself. ``dropped`` is None where nobody can know how many events are missing."""

    control: ControlKind
    ts: datetime
    reason: Reason | None = None
    dropped: int | None = None


Message: TypeAlias = Event | Control


class Ending(Enum):
    """Why a client gets nothing more."""

    OVERFLOW = "overflow"
    """Its buffer is full of events that must not be dropped."""
    STUCK = "stuck"
    """It takes too long to take what it is sent."""
    GONE = "gone"
    OVER = "over"
    """The time that it asked for has passed."""
    SHUTDOWN = "shutdown"


class TapClosed(Exception):
    """There is nothing more to take; ``ending`` says why."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending.value)
        self.ending = ending


class Tap(Generic[T]):
    """What one client has yet to get, each message as *encode* made it, once for all that share it."""

    def __init__(self, *, wanted: EventFilter, encode: Callable[[Message], T], clock: Clock, buffer: int) -> None:
        self.wanted = wanted
        self.encode = encode
        self.ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self._clock = clock
        self._buffer: Buffer[T] = Buffer(buffer)
        self._news = asyncio.Event()
        self._has_begun = False
        self._taken_at = clock.monotonic()

    async def take(self, *, at_most: timedelta) -> Sequence[T]:
        """Return some of what there is, the oldest first, as soon as there is anything; after *at_most* a heartbeat.

        Where something was dropped since, that is told first. Raises TapClosed.
        """
        await self._wait_for_news(at_most)
        if self.ended.done():
            raise TapClosed(self.ended.result())
        self._taken_at = self._clock.monotonic()
        dropped = self._buffer.take_dropped()
        taken = self._buffer.take(BATCH)
        if dropped:
            gap = Control(control=ControlKind.GAP, ts=self._clock.now(), reason=Reason.SLOW_CLIENT, dropped=dropped)
            taken.insert(0, self.encode(gap))
        return taken or [self.encode(Control(control=ControlKind.HEARTBEAT, ts=self._clock.now()))]

    def put(self, block: Block[T]) -> None:
        """Add messages, or let the client go where it has left no room for them."""
        if self.ended.done():
            return
        self._buffer.put(block)
        if self._buffer.has_overflowed:
            self.end(Ending.OVERFLOW)
        self._news.set()

    def begin(self, *, sequence: int) -> None:
        """Tell the client that from here on it gets every event, and where some may be missing before."""
        kind, reason = (ControlKind.GAP, Reason.BROKER_LOST) if self._has_begun else (ControlKind.SUBSCRIBED, None)
        self._has_begun = True
        self._tell(Control(control=kind, ts=self._clock.now(), reason=reason), sequence=sequence)

    def interrupt(self, *, sequence: int) -> None:
        """Tell the client that for now it gets no events."""
        if self._has_begun:
            self._tell(Control(control=ControlKind.INTERRUPTED, ts=self._clock.now()), sequence=sequence)

    def end(self, ending: Ending) -> None:
        """Let the client get nothing more; of several endings the first counts."""
        if not self.ended.done():
            self.ended.set_result(ending)
            self._buffer.clear()
            self._news.set()

    def is_crowded_by(self, number: int) -> bool:
        """Tell whether the client keeps up, and yet has no room for so many messages more."""
        return self._buffer.room < number and self._clock.monotonic() - self._taken_at < MOVING.total_seconds()

    def _tell(self, control: Control, *, sequence: int) -> None:
        self.put(Block([Item(sequence, self.encode(control), is_critical=True)]))

    async def _wait_for_news(self, at_most: timedelta) -> None:
        if self._has_news():
            return
        overdue = asyncio.Event()

        def expire() -> None:
            overdue.set()
            self._news.set()

        timer = self._clock.call_later(at_most, expire)
        try:
            while not (overdue.is_set() or self._has_news()):
                self._news.clear()
                await self._news.wait()
        finally:
            timer.cancel()

    def _has_news(self) -> bool:
        return bool(self._buffer) or self.ended.done()
