"""Events for whoever wants to watch: one subscription to the broker, any number of clients within a bound.

The subscription is there while there is a client, and a little longer: a process that nobody watches does not read what
a busy broker publishes.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Final, TypeVar

from dtq.application.fan_out_channels import Channels
from dtq.application.fan_out_feed import Feed
from dtq.application.fan_out_filter import EventFilter
from dtq.application.fan_out_tap import Ending, Message, Tap
from dtq.application.observers import Observers
from dtq.domain.errors import DtqError
from dtq.ports.environment import Chance, Clock, Timer
from dtq.ports.events import EventBus, Observer

LINGER: Final = timedelta(seconds=10)
"""How long the subscription is kept for the next client when the last one has gone."""

T = TypeVar("T")


class TooManyClients(DtqError):
    """As many clients listen as may."""

    code = "TOO_MANY_CLIENTS"

    def __init__(self, limit: int) -> None:
        super().__init__(f"{limit} clients listen to events here, which is the most that may")


class FanOut:
    """Lets clients listen. Each gets its events in order, and is told where some are missing."""

    def __init__(
        self,
        events: EventBus,
        *,
        clock: Clock,
        chance: Chance,
        observers: Sequence[Observer],
        buffer: int,
        max_clients: int,
    ) -> None:
        self._events = events
        self._clock = clock
        self._chance = chance
        self._observer = Observers(observers)
        self._buffer = buffer
        self._max_clients = max_clients
        self._channels = Channels()
        self._feed: Feed | None = None
        self._last: Feed | None = None
        self._idle: Timer | None = None
        self._is_closed = False

    @property
    def clients(self) -> int:
        """How many listen."""
        return len(self._channels)

    @contextmanager
    def listen(self, wanted: EventFilter, *, encode: Callable[[Message], T]) -> Iterator[Tap[T]]:
        """Get the events that *wanted* admits, as *encode* makes them, from the message `subscribed` on.

        Clients with the same function *encode* share its work. Raises TooManyClients.
        """
        if self.clients >= self._max_clients:
            self._observer.noticed("too_many_clients", limit=self._max_clients)
            raise TooManyClients(self._max_clients)
        tap = Tap(wanted=wanted, encode=encode, clock=self._clock, buffer=self._buffer)
        self._add(tap)
        try:
            yield tap
        finally:
            self._remove(tap)

    def close(self) -> None:
        """Let every client go, now and later, because the process ends."""
        self._is_closed = True
        for tap in self._channels.taps():
            tap.end(Ending.SHUTDOWN)
        self._rest()

    async def closed(self) -> None:
        """Close, and return when the subscription is let go of."""
        self.close()
        if self._last is not None:
            await self._last.stopped()

    def _add(self, tap: Tap[T]) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        self._channels.add(tap)
        if self._is_closed:
            tap.end(Ending.SHUTDOWN)
        elif self._feed is None:
            self._feed = Feed(
                self._events,
                channels=self._channels,
                clock=self._clock,
                chance=self._chance,
                observer=self._observer,
                buffer=self._buffer,
            )
            self._feed.start()
        elif self._feed.is_live:
            tap.begin(sequence=self._channels.next_sequence())

    def _remove(self, tap: Tap[T]) -> None:
        self._channels.remove(tap)
        if not self.clients and not self._is_closed:
            self._idle = self._clock.call_later(LINGER, self._rest)

    def _rest(self) -> None:
        if self._feed is not None:
            self._feed.stop()
            self._last, self._feed = self._feed, None
