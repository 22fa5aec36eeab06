"""Who hears what: filters, order, bounds, and the one subscription behind all clients."""

import asyncio
from contextlib import ExitStack
from datetime import timedelta

import pytest

from dtq.application.fan_out import LINGER, TooManyClients
from dtq.application.fan_out_filter import EVERYTHING, EventFilter
from dtq.application.fan_out_tap import Control, Ending, Message, Reason, TapClosed
from dtq.domain.events import Event, EventType
from tests.application.fan_out_world import GAP, PATIENT, SUBSCRIBED, FanOutWorld, as_it_is, heard, told
from tests.factories import a_task_id, an_event

E = EventType
SECOND = timedelta(seconds=1)


def events_of(*kinds: EventType, **members: object) -> list[Event]:
    return [an_event(type=kind, **members) for kind in kinds]


async def test_every_client_hears_every_event_in_order() -> None:
    world = FanOutWorld()
    events = events_of(E.TASK_QUEUED, E.TASK_STARTED, E.TASK_SUCCEEDED, E.WORKER_STALE, E.TASK_QUEUED)

    with (
        world.fan_out.listen(EVERYTHING, encode=as_it_is) as first,
        world.fan_out.listen(EVERYTHING, encode=as_it_is) as second,
    ):
        await world.publish()
        await world.publish(*events)

        assert [SUBSCRIBED, *events] == told(await heard(first))
        assert [SUBSCRIBED, *events] == told(await heard(second))


async def test_a_filter_lets_a_client_hear_what_it_wants() -> None:
    world = FanOutWorld()
    mine = a_task_id()
    [about_mine] = events_of(E.TASK_QUEUED, task_id=mine)
    [about_other, failed] = events_of(E.TASK_QUEUED, E.TASK_FAILED, task_id=a_task_id())

    with (
        world.fan_out.listen(EventFilter(task_ids=frozenset({mine})), encode=as_it_is) as by_task,
        world.fan_out.listen(EventFilter(types=frozenset({E.TASK_FAILED})), encode=as_it_is) as by_type,
    ):
        await world.publish(about_mine, about_other, failed)

        assert [SUBSCRIBED, about_mine] == told(await heard(by_task))
        assert [SUBSCRIBED, failed] == told(await heard(by_type))


async def test_a_client_of_several_tasks_hears_each_of_their_events_once() -> None:
    world = FanOutWorld()
    first, second = a_task_id(), a_task_id()
    events = [*events_of(E.TASK_QUEUED, task_id=first), *events_of(E.TASK_QUEUED, E.TASK_STARTED, task_id=second)]

    with world.fan_out.listen(EventFilter(task_ids=frozenset({first, second})), encode=as_it_is) as tap:
        await world.publish(*events)

        assert [SUBSCRIBED, *events] == told(await heard(tap))


async def test_an_event_is_encoded_once_however_many_clients_want_it() -> None:
    world = FanOutWorld()
    encoded: list[Message] = []

    def counting(message: Message) -> Message:
        encoded.append(message)
        return message

    with ExitStack() as stack:
        for wanted in (EVERYTHING, EVERYTHING, EventFilter(types=frozenset({E.TASK_QUEUED}))):
            stack.enter_context(world.fan_out.listen(wanted, encode=counting))
        await world.publish()
        encoded.clear()
        events = events_of(E.TASK_QUEUED, E.TASK_STARTED)
        await world.publish(*events)

    assert events == encoded


async def test_a_client_that_does_not_keep_up_is_told_what_it_lost() -> None:
    world = FanOutWorld(buffer=8)
    queued, done = events_of(*[E.TASK_QUEUED] * 10), events_of(*[E.TASK_SUCCEEDED] * 3)

    with world.fan_out.listen(EVERYTHING, encode=as_it_is) as tap:
        await world.publish()
        await world.pass_time(SECOND)
        for event in [*queued, *done]:
            await world.publish(event)

        gap, *rest = await heard(tap)
        assert isinstance(gap, Control)
        assert (GAP, Reason.SLOW_CLIENT, 6) == (gap.control, gap.reason, gap.dropped)
        # of the seven that fitted beside the first word, the last three critical ones took the place of the oldest
        assert [SUBSCRIBED, *queued[3:7], *done] == told(rest)


async def test_a_client_whose_buffer_overflows_is_let_go_and_harms_nobody() -> None:
    world = FanOutWorld(buffer=4)
    done = events_of(*[E.TASK_SUCCEEDED] * 4)
    queued = EventFilter(types=frozenset({E.TASK_QUEUED}))

    with (
        world.fan_out.listen(EVERYTHING, encode=as_it_is) as slow,
        world.fan_out.listen(queued, encode=as_it_is) as other,
    ):
        await world.publish()
        await world.pass_time(SECOND)
        await world.publish(*done)
        [event] = events_of(E.TASK_QUEUED)
        await world.publish(event)

        assert Ending.OVERFLOW is slow.ended.result()
        with pytest.raises(TapClosed) as closed:
            await slow.take(at_most=PATIENT)
        assert Ending.OVERFLOW is closed.value.ending
        assert [SUBSCRIBED, event] == told(await heard(other))


async def test_a_silence_is_filled_with_heartbeats() -> None:
    world = FanOutWorld()

    with world.fan_out.listen(EVERYTHING, encode=as_it_is) as tap:
        await heard(tap)
        for _ in range(3):
            before = world.clock.now()
            beat = await _taken_after(world, tap.take(at_most=10 * SECOND), by=10 * SECOND)
            assert ["heartbeat"] == told(beat)
            assert before + 10 * SECOND == world.clock.now()


async def _taken_after(world: FanOutWorld, taking: object, *, by: timedelta) -> list[Message]:
    task = asyncio.ensure_future(taking)  # type: ignore[call-overload]  # a coroutine
    await world.pass_time(by - timedelta(milliseconds=1))
    assert not task.done()
    await world.pass_time(timedelta(milliseconds=1))
    found: list[Message] = task.result()
    return found


async def test_no_more_clients_may_listen_than_the_limit() -> None:
    world = FanOutWorld(max_clients=2)

    with world.fan_out.listen(EVERYTHING, encode=as_it_is), world.fan_out.listen(EVERYTHING, encode=as_it_is):
        with pytest.raises(TooManyClients), world.fan_out.listen(EVERYTHING, encode=as_it_is):
            pass
        assert 2 == world.fan_out.clients

    with world.fan_out.listen(EVERYTHING, encode=as_it_is):
        assert 1 == world.fan_out.clients


async def test_all_clients_share_one_subscription_that_is_there_while_they_are() -> None:
    world = FanOutWorld()
    assert 0 == world.line.subscriptions

    with world.fan_out.listen(EVERYTHING, encode=as_it_is), world.fan_out.listen(EVERYTHING, encode=as_it_is):
        await world.publish()
        assert (1, 1) == (world.line.open, world.line.subscriptions)

    await world.pass_time(LINGER - SECOND)
    with world.fan_out.listen(EVERYTHING, encode=as_it_is) as tap:
        await world.pass_time(2 * LINGER)
        assert (1, 1) == (world.line.open, world.line.subscriptions)
        assert [SUBSCRIBED] == told(await heard(tap))

    await world.pass_time(LINGER)
    assert 0 == world.line.open
    with world.fan_out.listen(EVERYTHING, encode=as_it_is) as tap:
        await world.publish(*(events := events_of(E.TASK_QUEUED)))
        assert [SUBSCRIBED, *events] == told(await heard(tap))


async def test_nothing_is_kept_of_clients_that_have_gone() -> None:
    world = FanOutWorld()

    for _ in range(10):
        with (
            world.fan_out.listen(EventFilter(task_ids=frozenset({a_task_id(), a_task_id()})), encode=as_it_is),
            world.fan_out.listen(EventFilter(queues=frozenset({"mail"})), encode=as_it_is),
        ):
            await world.publish(*events_of(E.TASK_QUEUED))

    channels = world.fan_out._channels  # noqa: SLF001 - a leak shows nowhere else
    assert [0, 0, 0] == [len(kept) for kept in (channels._all, channels._of_task, channels._of_any)]  # noqa: SLF001 - as above


async def test_closing_ends_every_client_and_the_subscription() -> None:
    world = FanOutWorld()

    with world.fan_out.listen(EVERYTHING, encode=as_it_is) as tap:
        await world.publish()
        world.fan_out.close()

        assert Ending.SHUTDOWN is await tap.ended
        await world.fan_out.closed()
        assert 0 == world.line.open

    with world.fan_out.listen(EVERYTHING, encode=as_it_is) as late:
        assert Ending.SHUTDOWN is await late.ended
    assert 0 == world.line.open
