"""One timer, and everybody is told in time."""

import gc
import weakref
from collections.abc import Callable
from datetime import timedelta

from dtq.adapters.memory import ManualClock
from dtq.adapters.memory.clock import ManualTimer
from dtq.application.deadlines import Deadlines
from tests.application.stage import TickingClock


class Runner:
    """Something that may go on for some seconds."""

    def __init__(self, clock: ManualClock, *, seconds: float) -> None:
        self._clock = clock
        self.ends_at = clock.monotonic() + seconds
        self.told_at: list[float] = []

    def overrun(self) -> None:
        self.told_at.append(self._clock.monotonic())


async def test_everybody_is_told_once_and_at_the_right_time_whoever_came_first() -> None:
    clock = TickingClock()
    deadlines = Deadlines(clock)
    runners = [Runner(clock, seconds=seconds) for seconds in (5, 2, 9, 2, 7)]
    for runner in runners:
        deadlines.watch(runner)

    for _ in range(100):
        await clock.advance(timedelta(seconds=0.1))

    assert [[5.0], [2.0], [9.0], [2.0], [7.0]] == [[round(at, 1) for at in runner.told_at] for runner in runners]


async def test_nobody_is_told_before_the_time_has_come() -> None:
    clock = TickingClock()
    deadlines, runner = Deadlines(clock), Runner(clock, seconds=5)
    deadlines.watch(runner)

    await clock.advance(timedelta(seconds=4.9))

    assert [] == runner.told_at


async def test_who_has_ended_is_not_told_and_who_comes_later_is() -> None:
    clock = TickingClock()
    deadlines = Deadlines(clock)
    ended = Runner(clock, seconds=2)
    deadlines.watch(ended)
    deadlines.end(ended)
    await clock.advance(timedelta(seconds=3))

    late = Runner(clock, seconds=2)
    deadlines.watch(late)
    await clock.advance(timedelta(seconds=2.1))

    assert ([], 1) == (ended.told_at, len(late.told_at))


async def test_who_has_ended_is_forgotten_at_once() -> None:
    clock = TickingClock()
    deadlines, runner = Deadlines(clock), Runner(clock, seconds=3600)
    deadlines.watch(runner)
    deadlines.end(runner)
    is_there = weakref.ref(runner)

    del runner
    gc.collect()

    assert is_there() is None


class CountingClock(TickingClock):
    """A clock that remembers its timers."""

    def __init__(self) -> None:
        super().__init__()
        self.timers: list[ManualTimer] = []

    def call_later(self, delay: timedelta, callback: Callable[[], None]) -> ManualTimer:
        self.timers.append(super().call_later(delay, callback))
        return self.timers[-1]


async def test_however_many_there_are_they_share_one_timer() -> None:
    clock = CountingClock()
    deadlines = Deadlines(clock)

    for seconds in range(100, 0, -1):
        deadlines.watch(Runner(clock, seconds=seconds))

    assert 1 == sum(not timer.is_cancelled for timer in clock.timers)


async def test_a_deadline_that_no_timer_meets_exactly_does_not_stop_the_clock() -> None:
    clock = ManualClock()
    deadlines = Deadlines(clock)
    await clock.advance(timedelta(seconds=0.1))
    runner = Runner(clock, seconds=0.2)
    assert 0.3 < runner.ends_at
    deadlines.watch(runner)

    await clock.advance(timedelta(seconds=1))

    assert 1 == len(runner.told_at)
