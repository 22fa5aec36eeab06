"""How the subscription is kept up, and how its events are paced."""

import asyncio
from datetime import timedelta

from dtq.adapters.memory.clock import settle
from dtq.application.fan_out import LINGER
from dtq.application.fan_out_feed import GATHER, PATIENCE
from dtq.application.fan_out_filter import EVERYTHING
from dtq.application.fan_out_tap import MOVING, Control, Message, Reason, Tap
from dtq.domain.events import EventType
from tests.application.fan_out_world import (
    GAP,
    INTERRUPTED,
    PATIENT,
    SUBSCRIBED,
    FanOutWorld,
    as_it_is,
    heard,
    told,
)
from tests.factories import an_event

SECOND = timedelta(seconds=1)
LONG = timedelta(minutes=10)


async def test_a_cut_line_is_told_and_mended() -> None:
    world = FanOutWorld()
    before, after = an_event(), an_event()

    with world.fan_out.listen(EVERYTHING, encode=as_it_is) as tap:
        await world.publish(before)
        world.line.is_down = True
        world.line.cut()
        await world.pass_time(SECOND)
        assert [SUBSCRIBED, before, INTERRUPTED] == told(await heard(tap))

        await world.pass_time(LONG)
        assert [] == told(await heard(tap))

        world.line.is_down = False
        await world.pass_time(10 * SECOND)
        await world.publish(after)
        [gap, event] = await heard(tap)

        assert isinstance(gap, Control)
        assert (GAP, Reason.BROKER_LOST, None) == (gap.control, gap.reason, gap.dropped)
        assert after == event
        assert (2, 1) == (world.line.subscriptions, world.line.open)


async def test_a_line_that_held_for_long_is_renewed_at_once() -> None:
    world = FanOutWorld()

    with world.fan_out.listen(EVERYTHING, encode=as_it_is) as tap:
        await world.pass_time(LONG)
        world.line.cut()
        await world.pass_time(timedelta())

        assert [SUBSCRIBED, INTERRUPTED, GAP] == told(await heard(tap))
    assert ["events_interrupted"] == [what for what, _ in world.notes.notices]


async def test_a_line_that_breaks_again_and_again_is_not_tried_without_pause() -> None:
    world = FanOutWorld()

    with world.fan_out.listen(EVERYTHING, encode=as_it_is):
        for _ in range(100):
            await world.pass_time(timedelta(milliseconds=100))
            world.line.cut()

    assert 2 < world.line.subscriptions < 12


async def test_a_client_that_comes_while_the_line_is_down_begins_when_it_is_up() -> None:
    world = FanOutWorld()
    world.line.is_down = True

    with world.fan_out.listen(EVERYTHING, encode=as_it_is) as tap:
        await world.pass_time(LONG)
        assert [] == told(await heard(tap))

        world.line.is_down = False
        await world.pass_time(10 * SECOND)
        await world.publish(event := an_event())
        assert [SUBSCRIBED, event] == told(await heard(tap))


async def test_the_first_event_of_a_quiet_time_is_passed_on_at_once() -> None:
    world = FanOutWorld()

    with world.fan_out.listen(EVERYTHING, encode=as_it_is) as tap:
        await heard(tap)
        await world.line.publish(event := an_event())

        assert [event] == told(await heard(tap))


async def test_events_that_follow_are_gathered_for_a_moment() -> None:
    world = FanOutWorld()

    with world.fan_out.listen(EVERYTHING, encode=as_it_is) as tap:
        await world.pass_time(SECOND)
        await heard(tap)
        await world.line.publish(an_event())
        await heard(tap)
        events = [an_event() for _ in range(3)]
        for event in events:
            await world.line.publish(event)

        assert [] == told(await heard(tap))
        await world.pass_time(GATHER)
        assert events == told(await heard(tap))


async def test_a_burst_larger_than_the_buffer_costs_a_client_that_keeps_up_nothing() -> None:
    world = FanOutWorld(buffer=100)
    events = [an_event() for _ in range(5000)]

    with world.fan_out.listen(EVERYTHING, encode=as_it_is) as tap:
        await heard(tap)
        taken: list[Message] = []
        taking = asyncio.ensure_future(_take_for_ever(tap, into=taken))
        for event in events:
            await world.line.publish(event)
        for _ in range(1000):
            await world.pass_time(timedelta(milliseconds=1))
        taking.cancel()

    assert events == taken


async def test_a_client_that_takes_nothing_holds_up_the_others_for_a_moment_only() -> None:
    world = FanOutWorld(buffer=4)
    events = [an_event(type=EventType.TASK_QUEUED) for _ in range(20)]

    with (
        world.fan_out.listen(EVERYTHING, encode=as_it_is) as stuck,
        world.fan_out.listen(EVERYTHING, encode=as_it_is) as healthy,
    ):
        taken: list[Message] = []
        taking = asyncio.ensure_future(_take_for_ever(healthy, into=taken))
        await world.pass_time(GATHER)
        for event in events:
            await world.line.publish(event)
        await world.pass_time(len(events) * (PATIENCE + GATHER))
        taking.cancel()

        assert [SUBSCRIBED, *events] == told(taken)
        [gap, *rest] = await heard(stuck)
        assert isinstance(gap, Control)
        assert (17, [SUBSCRIBED, *events[:3]]) == (gap.dropped, told(rest))


async def test_a_client_that_has_long_been_stuck_holds_up_nobody() -> None:
    world = FanOutWorld(buffer=4)
    events = [an_event(type=EventType.TASK_QUEUED) for _ in range(20)]

    with (
        world.fan_out.listen(EVERYTHING, encode=as_it_is),
        world.fan_out.listen(EVERYTHING, encode=as_it_is) as healthy,
    ):
        taken: list[Message] = []
        taking = asyncio.ensure_future(_take_for_ever(healthy, into=taken))
        await world.publish(*[an_event() for _ in range(4)])
        await world.pass_time(2 * MOVING)
        taken.clear()
        for event in events:
            await world.line.publish(event)
        await settle(turns=1000)
        taking.cancel()

    assert events == taken


async def test_what_was_heard_before_the_line_was_cut_is_told_before_that() -> None:
    world = FanOutWorld()
    first, second = an_event(), an_event()

    with world.fan_out.listen(EVERYTHING, encode=as_it_is) as tap:
        await heard(tap)
        await world.line.publish(first)
        await heard(tap)
        await world.line.publish(second)
        await settle()
        world.line.cut()

        assert [second, INTERRUPTED] == told(await heard(tap))


async def test_the_end_of_an_old_subscription_is_none_of_a_new_clients_business() -> None:
    world = FanOutWorld()
    with world.fan_out.listen(EVERYTHING, encode=as_it_is):
        await world.publish()

    world.line.may_end.clear()
    await world.pass_time(LINGER)
    with world.fan_out.listen(EVERYTHING, encode=as_it_is) as tap:
        assert [SUBSCRIBED] == told(await heard(tap))
        assert 2 == world.line.open
        world.line.may_end.set()
        await world.publish(event := an_event())

        assert [event] == told(await heard(tap))
    assert 1 == world.line.open


async def test_what_cannot_be_passed_on_is_left_in_the_broker() -> None:
    world = FanOutWorld(buffer=100)

    with world.fan_out.listen(EVERYTHING, encode=as_it_is) as tap:
        await heard(tap)
        for _ in range(300):
            await world.line.publish(an_event())
        await settle(turns=3000)
        feed = world.fan_out._feed  # noqa: SLF001 - what is read ahead shows nowhere else
        assert feed is not None
        assert 100 // 4 == len(feed._pending)  # noqa: SLF001 - as above


async def _take_for_ever(tap: Tap[Message], *, into: list[Message]) -> None:
    while True:
        into.extend(await tap.take(at_most=PATIENT))
