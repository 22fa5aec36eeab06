"""Time that stands still until somebody moves it, for tests and simulations."""

import asyncio
import heapq
from collections.abc import Callable, Generator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Final

_EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
_TURNS: Final = 25
"""How many turns of the event loop a woken coroutine gets before time goes on: enough for a chain of port calls."""


class ManualTimer:
    """A call that is made when its moment is reached, unless it is cancelled."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Make the call never."""
        self._callback = None

    @property
    def is_cancelled(self) -> bool:
        """Whether there is no call to make any more."""
        return self._callback is None

    def fire(self) -> bool:
        """Make the call, and tell whether there was one to make."""
        callback, self._callback = self._callback, None
        if callback is None:
            return False
        callback()
        return True


class ManualClock:
    """A clock that is moved by hand; what is due on the way happens at its own moment, in order.

    Nothing waits for less than *shortest*: above zero, rounding cannot make a loop turn for ever in one moment.
    """

    def __init__(self, *, start: datetime = _EPOCH, shortest: timedelta = timedelta()) -> None:
        self._start = start
        self._shortest = shortest
        self._elapsed = timedelta()
        self._timers: list[tuple[timedelta, int, ManualTimer]] = []
        self._order = count()

    def now(self) -> datetime:
        """Return the time that the clock was moved to, in whole milliseconds."""
        moment = self._start + self._elapsed
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000)

    def monotonic(self) -> float:
        """Return the seconds that the clock was moved by."""
        return self._elapsed.total_seconds()

    async def sleep(self, duration: timedelta) -> None:
        """Wait until the clock was moved by *duration*."""
        if duration <= timedelta():
            await settle(turns=1)
            return
        woken = asyncio.get_running_loop().create_future()
        timer = self.call_later(duration, lambda: None if woken.done() else woken.set_result(None))
        try:
            await woken
        finally:
            timer.cancel()

    def call_later(self, delay: timedelta, callback: Callable[[], None]) -> ManualTimer:
        """Call *callback* once the clock was moved by *delay*."""
        timer = ManualTimer(callback)
        heapq.heappush(self._timers, (self._elapsed + max(delay, self._shortest), next(self._order), timer))
        return timer

    async def advance(self, by: timedelta) -> None:
        """Move the clock; every timer on the way runs, and what it woke has its turns, before the next one."""
        target = self._elapsed + by
        await settle()
        while self._timers and self._timers[0][0] <= target:
            moment, _, timer = heapq.heappop(self._timers)
            self._elapsed = max(self._elapsed, moment)
            if timer.fire():
                await settle()
        self._elapsed = target
        await settle()

    def next_timer(self) -> timedelta | None:
        """Return how far the clock has to be moved for something to happen, or None where nothing waits."""
        while self._timers and self._timers[0][2].is_cancelled:
            heapq.heappop(self._timers)
        return max(timedelta(), self._timers[0][0] - self._elapsed) if self._timers else None


async def settle(*, turns: int = _TURNS) -> None:
    """Let everything that is ready on the event loop run, and what it makes ready, for a number of turns."""
    for _ in range(turns):
        await _Turn()


class _Turn:
    """One turn of the event loop."""

    def __await__(self) -> Generator[None, None, None]:
        yield
