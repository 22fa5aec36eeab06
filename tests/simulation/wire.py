"""The connection of one process with the broker: slow, lossy, cut, as the weather has it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from enum import Enum
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from dtq.adapters.redis.clock import RedisClock
from dtq.domain.errors import BrokerUnavailable, OutcomeUnknown
from dtq.ports.backend import Backend
from tests.application.link import Link, Linked, over
from tests.simulation.chances import Random
from tests.simulation.history import TripMade
from tests.simulation.loop import Call
from tests.simulation.server import HostClock, Server
from tests.simulation.subscription import Subscription

T = TypeVar("T")

CALL_TIMEOUT: Final = 4.0
"""After how many seconds a caller gives up; what it has sent may be carried out later."""

WAIT_TIMEOUT: Final = 10.0
"""The same for the one call that is meant to block."""

_ENDLESS: Final = "wait"


class Weather(Struct, frozen=True, kw_only=True):
    """How a connection is, as chances of each request."""

    lost_requests: float = 0.0
    lost_replies: float = 0.0
    slow: float = 0.0
    longest: float = 0.002
    """How long one way usually takes at most."""
    slowest: float = 6.0
    lost_signals: float = 0.0


FAIR: Final = Weather()


class _Fate(Enum):
    ARRIVES = "it is carried out and answered"
    REFUSED = "it is known not to have been sent"
    LOST = "it does not arrive"
    UNANSWERED = "it is carried out, and its reply is lost"


class Wire(Link):
    """A link whose every request travels through virtual time, to be carried out by the server's own actor."""

    def __init__(self, name: str, *, server: Server, random: Random, host: HostClock | None = None) -> None:
        super().__init__()
        self.name = name
        self.weather = FAIR
        self.downs = 0
        self.loses_what_is_under_way = False
        self.loses_next_reply = False
        self.next_request_is_late = 0.0
        """How many seconds longer the next request takes to arrive."""
        self._server = server
        self._random = random
        self._loop = server.loop
        self.host = host or HostClock(server.loop)
        self.clock = RedisClock(self.host)
        self._subscriptions: list[Subscription[Any]] = []
        self._blocking: list[Trip] = []

    def backend(self) -> Backend:
        """The broker as it is seen through this connection."""
        seen = over(self, self._server.seen_by(self.name))
        return replace(
            seen,
            signals=Subscribing(self._server.seen_by(self.name).signals, self),
            events=Subscribing(self._server.seen_by(self.name).events, self),
            clock=self.clock,
        )

    def cut(self) -> None:
        """Lose every subscription that stands."""
        for subscription in self._subscriptions:
            subscription.lose()
        self._subscriptions = []

    def reset(self) -> None:
        """Lose every subscription and every request that blocks the server, as when a server ends."""
        self.cut()
        for trip in self._blocking:
            trip.reset()
        self._blocking = []

    async def carry(self, method: str, call: Callable[[], Awaitable[object]], *, commits: bool = False) -> object:
        """Send one request, and wait for its reply as long as a driver would."""
        del commits  # of no matter on the way
        trip = Trip(self, call, fate=self._fate(), is_endless=method == _ENDLESS)
        sent = self._loop.time()
        made = TripMade(sent, self.name, method)
        self._server.history.trips.append(made)
        trip.depart(made)
        if method == _ENDLESS:
            self._blocking = [trip]
        try:
            answer, server_time = await trip.reply
        finally:
            trip.hang_up()
        self.clock.learn(server_time, sent=sent, received=self._loop.time())
        return answer

    def subscription(
        self, opened: Callable[[], AbstractAsyncContextManager[AsyncIterator[T]]], *, loses: bool
    ) -> "Subscription[T]":
        """Begin to listen to what *opened* brings; where it *loses*, not every message arrives."""
        subscription = Subscription(
            opened,
            loop=self._loop,
            context=self._server.actor.context,
            way=self.under_way,
            loses=self.loses_a_signal if loses else lambda: False,
        )
        self._subscriptions.append(subscription)
        return subscription

    def under_way(self) -> float:
        """Draw how long one way takes."""
        weather, random = self.weather, self._random
        if weather.slow and random.random() < weather.slow:
            return random.uniform(0.05, weather.slowest)
        return random.uniform(0.0001, weather.longest)

    def loses_a_signal(self) -> bool:
        """Draw whether one message that was published is lost."""
        return bool(self.weather.lost_signals) and self._random.random() < self.weather.lost_signals

    @property
    def server(self) -> Server:
        """What is at the other end."""
        return self._server

    @property
    def is_cut(self) -> bool:
        """Whether nothing comes through."""
        return self.downs > 0 or self._server.is_down

    def _fate(self) -> _Fate:
        drawn = self._random.random()
        if self.is_cut:
            return _Fate.REFUSED if drawn < 0.8 else _Fate.LOST
        if drawn < self.weather.lost_requests:
            return _Fate.LOST if drawn < self.weather.lost_requests / 2 else _Fate.REFUSED
        return _Fate.UNANSWERED if drawn > 1 - self.weather.lost_replies else _Fate.ARRIVES


class Trip:
    """One request on its way to the server and back. The way and the work belong to the server's actor."""

    def __init__(self, wire: Wire, call: Callable[[], Awaitable[object]], *, fate: _Fate, is_endless: bool) -> None:
        self._loop = wire.server.loop
        self.reply: asyncio.Future[tuple[object, float]] = self._loop.create_future()
        self._wire = wire
        self._call = call
        self._fate = fate
        self._is_endless = is_endless
        self._context = wire.server.actor.context
        self._work: asyncio.Task[object] | None = None
        self._overdue: Call | None = None

    def depart(self, made: TripMade) -> None:
        """Send the request; where it is refused instead, *made* is told when that is known."""
        limit = WAIT_TIMEOUT if self._is_endless else CALL_TIMEOUT
        self._overdue = self._loop.call_later(limit, self._fail, OutcomeUnknown(f"no answer within {limit:g} s"))
        late, self._wire.next_request_is_late = self._wire.next_request_is_late, 0.0
        way = self._wire.under_way() + late
        if self._fate is _Fate.REFUSED:
            self._loop.call_later(way, self._refuse, made, context=self._context)
        elif self._fate is _Fate.LOST and self._wire.server.is_down:
            self._wire.server.unaware.append(self.reset)
        elif self._fate is not _Fate.LOST:
            self._loop.call_later(way, self._arrive, context=self._context)

    def hang_up(self) -> None:
        """Wait no longer: a request that blocks the server ends there, after a moment."""
        if self._overdue is not None:
            self._overdue.cancel()
        if self._work is not None and not self._work.done():
            self._loop.call_later(self._wire.under_way(), self._work.cancel, context=self._context)

    def reset(self) -> None:
        """Break, so that the caller finds out in a moment."""
        if self._work is not None:
            self._work.cancel()
        self._later(self._fail, OutcomeUnknown("the connection broke"))

    def _arrive(self) -> None:
        if self._wire.loses_what_is_under_way or self._wire.is_cut:
            return
        if self._is_endless:
            if not self.reply.done():
                self._work = self._loop.create_task(self._working(), context=self._context)
            return
        coroutine = self._call()
        assert isinstance(coroutine, Coroutine)
        try:
            coroutine.send(None)
        except StopIteration as done:
            self._return(done.value, None)
        except BrokerUnavailable as error:
            self._return(None, error)
        else:
            raise AssertionError("a call of the memory adapter is one step")

    async def _working(self) -> object:
        answer = await self._call()
        if not self._wire.is_cut:
            self._return(answer, None)
        return answer

    def _return(self, answer: object, error: Exception | None) -> None:
        loses, self._wire.loses_next_reply = self._wire.loses_next_reply, False
        if loses or self._fate is _Fate.UNANSWERED:
            # the caller may find out at once that the connection is gone, or never
            if int(self._loop.time() * 1000) % 2:
                self._later(self._fail, OutcomeUnknown("the connection broke"))
            return
        if error is not None:
            self._later(self._fail, error)
            return
        self._later(self._deliver, answer, self._wire.server.clock.now().timestamp())

    def _refuse(self, made: TripMade) -> None:
        made.refused_at = self._loop.time()
        self._fail(BrokerUnavailable("the connection is refused"))

    def _later(self, callback: Callable[..., None], *arguments: object) -> None:
        self._loop.call_later(self._wire.under_way(), callback, *arguments, context=self._context)

    def _deliver(self, answer: object, server_time: float) -> None:
        if self._wire.is_cut:
            return
        if not self.reply.done():
            self.reply.set_result((answer, server_time))

    def _fail(self, error: Exception) -> None:
        if not self.reply.done():
            self.reply.set_exception(error)


class Subscribing(Linked):
    """A port to which one can listen, behind a wire."""

    def __init__(self, port: object, wire: Wire) -> None:
        super().__init__(port, wire)
        self._wire = wire

    def listen(self, worker: object, *, queue: object) -> AbstractAsyncContextManager[AsyncIterator[Any]]:
        port: Any = self._port
        return self._listening(lambda: port.listen(worker, queue=queue), loses=True)

    def subscribe(self) -> AbstractAsyncContextManager[AsyncIterator[Any]]:
        port: Any = self._port
        # events of one connection are not lost singly: it breaks, and that is seen
        return self._listening(port.subscribe, loses=False)

    @asynccontextmanager
    async def _listening(
        self, opened: Callable[[], AbstractAsyncContextManager[AsyncIterator[Any]]], *, loses: bool
    ) -> AsyncIterator[AsyncIterator[Any]]:
        subscription = self._wire.subscription(opened, loses=loses)
        try:
            await self._wire.carry("listen", subscription.begin)
            yield subscription
        finally:
            subscription.end()
