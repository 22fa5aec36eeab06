"""Waiting for a reason to look again, on a clock that tests move."""

import asyncio
from collections.abc import Generator
from datetime import timedelta

from dtq.ports.environment import Clock


class Nudge:
    """A wish that one loop looks again; it is remembered until the loop waits for it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._event = asyncio.Event()
        self.give = self._event.set
        """Lets the loop look again, now or as soon as it waits; the event's own, since it is given for each task."""

    async def wait(self, *, at_most: timedelta) -> None:
        """Return at the next nudge, or when *at_most* has passed."""
        timer = self._clock.call_later(max(at_most, timedelta()), self._event.set)
        try:
            await self._event.wait()
        finally:
            timer.cancel()
        self._event.clear()


class StopSign:
    """Raised once and for all; any number of loops look at it and end their pauses early."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._event = asyncio.Event()
        self.is_raised = self._event.is_set
        """Tells whether to stop; the event's own, since it is asked several times a turn."""

    def show(self) -> None:
        """Raise the sign; repeatable."""
        self._event.set()

    async def wait(self) -> None:
        """Return when the sign is raised."""
        await self._event.wait()

    async def pause(self, duration: timedelta) -> None:
        """Return when *duration* has passed or the sign is raised."""
        waiting = asyncio.ensure_future(self._event.wait())

        def end() -> None:
            waiting.cancel()

        timer = self._clock.call_later(max(duration, timedelta()), end)
        try:
            await asyncio.wait({waiting})
        finally:
            timer.cancel()
            waiting.cancel()


class _Turn:
    """Awaited, it lets the event loop go round once."""

    def __await__(self) -> Generator[None, None, None]:
        yield


async def others_first() -> None:
    """Return when everybody has had a turn who was ready for it."""
    await _Turn()
