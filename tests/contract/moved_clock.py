"""A backend's own clock that a test may move forward, while real time goes on besides."""

import asyncio
import heapq
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count

from dtq.adapters.memory.clock import settle
from dtq.ports.environment import Clock


class MovedTimer:
    """A call that is made once, when its moment on the moved clock has come."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback: Callable[[], None] | None = callback
        self._handle: asyncio.TimerHandle | None = None

    def arm(self, seconds: float) -> None:
        """Let real time make the call, unless the clock is moved first."""
        if self._handle is not None:
            self._handle.cancel()
        if self._callback is not None:
            self._handle = asyncio.get_running_loop().call_later(seconds, self.fire)

    def cancel(self) -> None:
        self._callback = None
        if self._handle is not None:
            self._handle.cancel()

    def fire(self) -> None:
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()


class MovedClock:
    """Shows another clock's time and what it was moved by."""

    def __init__(self, inner: Clock) -> None:
        self._inner = inner
        self._moved = timedelta()
        self._timers: list[tuple[float, int, MovedTimer]] = []
        self._order = count()

    def now(self) -> datetime:
        moment = self._inner.now() + self._moved
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000)

    def monotonic(self) -> float:
        return self._inner.monotonic() + self._moved.total_seconds()

    async def sleep(self, duration: timedelta) -> None:
        woken = asyncio.Event()
        timer = self.call_later(duration, woken.set)
        try:
            await woken.wait()
        finally:
            timer.cancel()

    def call_later(self, delay: timedelta, callback: Callable[[], None]) -> MovedTimer:
        timer = MovedTimer(callback)
        timer.arm(delay.total_seconds())
        heapq.heappush(self._timers, (self.monotonic() + delay.total_seconds(), next(self._order), timer))
        return timer

    async def advance(self, by: timedelta) -> None:
        """Move the clock; what is due on the way happens in order, and what it woke has its turn."""
        end = self._moved + by
        await settle()
        while self._timers and self._timers[0][0] <= self.monotonic() + (end - self._moved).total_seconds():
            moment, _, timer = heapq.heappop(self._timers)
            self._moved += timedelta(seconds=max(0.0, moment - self.monotonic()))
            timer.fire()
            await settle()
        self._moved = end
        for moment, _, timer in self._timers:
            timer.arm(max(0.0, moment - self.monotonic()))
        await settle()
