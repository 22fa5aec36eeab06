"""The clock that stands still until it is moved: what other tests and simulations rely on."""

import asyncio
from datetime import timedelta
from functools import partial

from dtq.adapters.memory.clock import ManualClock
from tests.contract.steps import seconds
from tests.factories import NOW


async def test_it_stands_still() -> None:
    clock = ManualClock(start=NOW)

    assert (NOW, NOW, 0.0) == (clock.now(), clock.now(), clock.monotonic())


async def test_calls_are_made_in_the_order_of_their_moments_and_at_them() -> None:
    clock = ManualClock(start=NOW)
    calls: list[tuple[str, float]] = []

    def note(name: str) -> None:
        calls.append((name, clock.monotonic()))

    for name, delay in (("late", 3.0), ("early", 1.0), ("second early", 1.0), ("never", 9.0)):
        clock.call_later(seconds(delay), partial(note, name))

    await clock.advance(seconds(5))

    assert [("early", 1.0), ("second early", 1.0), ("late", 3.0)] == calls
    assert 5.0 == clock.monotonic()


async def test_what_a_call_starts_has_its_turn_before_time_goes_on() -> None:
    clock = ManualClock(start=NOW)
    woken: list[float] = []

    async def sleeper() -> None:
        for _ in range(3):
            await clock.sleep(seconds(2))
            woken.append(clock.monotonic())

    sleeping = asyncio.create_task(sleeper())
    await clock.advance(seconds(7))

    assert [2.0, 4.0, 6.0] == woken
    await sleeping


async def test_a_sleep_that_is_cancelled_leaves_no_timer() -> None:
    clock = ManualClock(start=NOW)
    sleeping = asyncio.create_task(clock.sleep(seconds(2)))
    await clock.advance(seconds(1))
    assert seconds(1) == clock.next_timer()

    sleeping.cancel()
    await asyncio.gather(sleeping, return_exceptions=True)

    assert clock.next_timer() is None


async def test_the_next_timer_tells_how_far_to_move() -> None:
    clock = ManualClock(start=NOW)
    clock.call_later(seconds(4), lambda: None)
    clock.call_later(seconds(2), lambda: None).cancel()

    assert seconds(4) == clock.next_timer()


async def test_now_is_cut_to_milliseconds_and_time_between_is_not_lost() -> None:
    clock = ManualClock(start=NOW)

    for _ in range(4):
        await clock.advance(timedelta(microseconds=600))

    assert NOW + timedelta(milliseconds=2) == clock.now()
