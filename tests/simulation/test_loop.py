"""The event loop of the simulation: when time passes, and who runs meanwhile."""

import asyncio
from collections.abc import Callable
from contextvars import Context
from datetime import timedelta

import pytest

from tests.simulation.chances import child
from tests.simulation.loop import Actor, Runaway, VirtualLoop
from tests.simulation.server import HostClock


def a_loop(choose: Callable[[], float] = lambda: 0.0) -> VirtualLoop:
    return VirtualLoop(choose)  # type: ignore[abstract] # nothing calls the rest


def test_time_jumps_to_the_next_timer() -> None:
    loop = a_loop()
    clock = HostClock(loop)

    async def sleep_long() -> float:
        await clock.sleep(timedelta(hours=3))
        return loop.time()

    assert loop.run_until_complete(sleep_long()) == 3 * 3600


def test_a_stopped_actor_catches_up_in_order_when_it_goes_on() -> None:
    loop = a_loop()
    clock = HostClock(loop)
    actor = Actor("one")
    ticks: list[tuple[float, float]] = []

    def tick(due: float) -> None:
        ticks.append((due, loop.time()))

    async def stop_it() -> None:
        for due in (1.0, 2.0, 3.0):
            loop.call_at(due, tick, due, context=actor.context)
        await clock.sleep(timedelta(seconds=1.5))
        loop.stop_actor(actor)
        await clock.sleep(timedelta(seconds=3.5))
        loop.go_on(actor)
        await clock.sleep(timedelta(seconds=1))

    loop.run_until_complete(stop_it())

    assert ticks == [(1.0, 1.0), (2.0, 5.0), (3.0, 5.0)]


def test_an_actor_that_is_stopped_twice_goes_on_after_both_ends() -> None:
    loop = a_loop()
    actor = Actor("one")

    for _ in range(2):
        loop.stop_actor(actor)
    loop.go_on(actor)
    assert actor.is_stopped

    loop.go_on(actor)
    assert not actor.is_stopped


def test_nothing_of_a_dead_actor_ever_runs() -> None:
    loop = a_loop()
    clock = HostClock(loop)
    actor = Actor("one")
    ran: list[str] = []

    async def kill_it() -> None:
        loop.call_soon(ran.append, "ready", context=actor.context)
        loop.call_at(1.0, ran.append, "due", context=actor.context)
        loop.kill(actor)
        loop.go_on(actor)
        loop.call_soon(ran.append, "told", context=actor.context)
        await clock.sleep(timedelta(seconds=2))

    loop.run_until_complete(kill_it())

    assert ran == []


def test_tasks_belong_to_the_actor_that_begins_them_also_in_a_context_of_their_own() -> None:
    loop = a_loop()
    actor = Actor("one")
    names: list[str] = []

    async def inner() -> None:
        names.append("inner")

    async def outer() -> None:
        asyncio.create_task(inner(), context=Context())  # noqa: RUF006 - the loop holds it

    async def begin() -> None:
        loop.create_task(outer(), context=actor.context)
        await HostClock(loop).sleep(timedelta(seconds=1))

    loop.run_until_complete(begin())

    assert names == ["inner"]


@pytest.mark.parametrize("is_first", [True, False])
def test_whose_turn_it_is_is_a_matter_of_chance(is_first: bool) -> None:  # noqa: FBT001 - a parameter of the test
    loop = a_loop(lambda: 0.0 if is_first else 0.99)
    ran: list[str] = []

    async def race() -> None:
        for name in ("a", "b"):
            loop.call_soon(ran.append, name, context=Actor(name).context)
        await HostClock(loop).sleep(timedelta(seconds=1))

    loop.run_until_complete(race())

    assert ran == (["a", "b"] if is_first else ["b", "a"])


def test_what_turns_for_ever_is_found_out() -> None:
    loop = a_loop()

    def again() -> None:
        loop.call_soon(again)

    async def turn() -> None:
        again()
        await HostClock(loop).sleep(timedelta(seconds=1))

    with pytest.raises(Runaway, match=r"callbacks at 0\.000 s"):
        loop.run_until_complete(turn())


def test_a_run_in_which_nothing_can_happen_any_more_is_found_out() -> None:
    loop = a_loop()

    async def wait_for_ever() -> None:
        await loop.create_future()

    with pytest.raises(Runaway, match="nothing can happen"):
        loop.run_until_complete(wait_for_ever())


def test_parts_of_a_run_draw_from_sources_of_their_own() -> None:
    one, same, other, another = (child(seed, name) for seed, name in ((1, "a"), (1, "a"), (1, "b"), (2, "a")))
    drawn = one.random()

    assert drawn == same.random()
    assert len({drawn, other.random(), another.random()}) == 3
