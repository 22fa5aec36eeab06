import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from dtq.adapters.memory import ManualClock
from dtq.adapters.memory.clock import settle
from dtq.application.lag import INTERVAL, WINDOW, LoopLag
from tests.application.stage import Notes


class Loop:
    """An event loop that can be held up, and what is said of it."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.notes = Notes()
        self.lag = LoopLag(self.clock, observer=self.notes)

    def hold(self, seconds: float) -> None:
        """Let time pass in which nothing on the loop has its turn."""
        self.clock._elapsed += timedelta(seconds=seconds)  # noqa: SLF001 - a clock that is moved lets everybody act


@pytest.fixture
async def loop() -> AsyncIterator[Loop]:
    loop = Loop()
    running = asyncio.ensure_future(loop.lag.run())
    await settle()
    yield loop
    running.cancel()


async def test_a_loop_in_time_has_no_lag(loop: Loop) -> None:
    await loop.clock.advance(timedelta(seconds=10))

    assert 0 == loop.lag.worst()


async def test_nothing_is_said_of_a_loop_that_is_not_looked_at() -> None:
    clock = ManualClock()

    assert 0 == LoopLag(clock, observer=Notes()).worst()


async def test_a_lag_shows_while_the_loop_stands(loop: Loop) -> None:
    loop.hold(3)

    assert 3 - INTERVAL.total_seconds() == pytest.approx(loop.lag.worst())


async def test_the_worst_lag_shows_for_a_minute(loop: Loop) -> None:
    for seconds in (0.5, 2, 0.75):
        loop.hold(seconds + INTERVAL.total_seconds())
        await loop.clock.advance(timedelta())

    assert 2 == pytest.approx(loop.lag.worst())
    await loop.clock.advance(WINDOW - timedelta(seconds=2))
    assert 2 == pytest.approx(loop.lag.worst())
    await loop.clock.advance(timedelta(seconds=1.5))
    assert 0.75 == pytest.approx(loop.lag.worst())
    await loop.clock.advance(WINDOW)
    assert 0 == pytest.approx(loop.lag.worst())


async def test_a_lag_of_more_than_a_second_is_told_once(loop: Loop) -> None:
    for seconds in (0.9, 1.5):
        loop.hold(seconds + INTERVAL.total_seconds())
        await loop.clock.advance(timedelta())
    await loop.clock.advance(timedelta(seconds=5))

    assert [("event_loop_lag", {"seconds": 1.5})] == loop.notes.notices
