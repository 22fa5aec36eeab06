"""Everything that is not deterministic: time, chance and new names."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

from msgspec import Struct

from dtq.domain.task import LeaseToken, TaskId, Version, WorkerId


class Timer(Protocol):
    """A call that is yet to be made."""

    def cancel(self) -> None:
        """Make it never."""
        ...


class Clock(Protocol):
    """Time, as the broker sees it."""

    def now(self) -> datetime:
        """Return the broker's time, aware UTC, in whole milliseconds."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back, for measuring."""
        ...

    async def sleep(self, duration: timedelta) -> None:
        """Wait for *duration*."""
        ...

    def call_later(self, delay: timedelta, callback: Callable[[], None]) -> Timer:
        """Call *callback* on the running event loop after *delay*, unless the timer is cancelled."""
        ...


class Ids(Protocol):
    """New names, never used before and not to be guessed."""

    def task(self) -> TaskId:
        """Return a new task id: uuid4 as 32 hex digits."""
        ...

    def worker(self) -> WorkerId:
        """Return a new worker id: ``worker-`` and 8 hex digits."""
        ...

    def token(self) -> Version:
        """Return a new token: uuid4 as 32 hex digits."""
        ...

    def lease(self) -> LeaseToken:
        """Return a new lease: uuid4 as 32 hex digits."""
        ...


class Chance(Protocol):
    """Randomness."""

    def uniform(self, low: float, high: float) -> float:
        """Return a number within *low*..*high*."""
        ...


class ServerFacts(Struct, frozen=True, kw_only=True):
    """What a broker's server says of itself. ``problems`` and ``warnings`` are words for an operator, without secrets.

    A server with problems is not ready for new work; ``host_offset`` is how far its clock is ahead of this host's. One
    that is no primary takes no step, and so nobody can look at what is stored there.
    """

    description: str
    uptime: timedelta
    host_offset: timedelta = timedelta()
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    is_primary: bool = True


class Server(Protocol):
    """The broker's server, for start-up checks and readiness."""

    async def inspect(self) -> ServerFacts:
        """Ask the server how it is; raises BrokerUnavailable where it does not answer."""
        ...

    async def prepare(self) -> None:
        """Check that everything dtq needs works here, and raise UnsuitableBroker with the reason if not."""
        ...

    async def close(self) -> None:
        """Let go of every connection."""
        ...
