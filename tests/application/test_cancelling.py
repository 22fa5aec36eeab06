"""A running task is told to stop, and ends cancelled whatever it does."""

import pytest

from dtq.domain.errors import CancelRequested
from dtq.domain.status import TaskStatus
from tests.application import handlers
from tests.application.link import Loss
from tests.application.world import World
from tests.factories import OPERATOR

S = TaskStatus


async def ask_to_cancel(world: World, task_id: str) -> None:
    with pytest.raises(CancelRequested):
        await world.tasks.cancel(task_id, by=OPERATOR)
    await world.settle()


async def test_a_running_async_handler_is_cancelled_at_once(world: World) -> None:
    await world.hire()
    task_id = await world.submit("hold")

    await ask_to_cancel(world, task_id)

    assert S.CANCELLED == await world.status(task_id)
    assert 0 == world.clock.monotonic()


async def test_without_the_signal_the_beat_finds_out_within_two_seconds(world: World) -> None:
    await world.hire()
    task_id = await world.submit("hold")
    world.link.lose("tell_worker", Loss.BEFORE)

    await ask_to_cancel(world, task_id)
    assert S.RUNNING == await world.status(task_id)
    await world.advance(1.1)

    assert S.CANCELLED == await world.status(task_id)
    assert [{"kind": "cancel", "error": "BrokerUnavailable"}] == world.notes.of("signal_lost")


async def test_a_handler_that_swallows_the_cancellation_ends_cancelled_after_a_second(world: World) -> None:
    staff = await world.hire(concurrency=2)
    task_id = await world.submit("stubborn")

    await ask_to_cancel(world, task_id)
    await world.advance(0.9)
    assert S.RUNNING == await world.status(task_id)
    await world.advance(0.2)

    assert S.CANCELLED == await world.status(task_id)
    assert not staff.life.done()


async def test_a_thread_is_waited_for_and_its_result_dropped(world: World) -> None:
    await world.hire()
    task_id = await world.submit("thread")
    await world.until(lambda: bool(handlers.runs))

    await ask_to_cancel(world, task_id)
    await world.advance(5)
    assert S.RUNNING == await world.status(task_id)
    handlers.gate().open()
    await world.until(lambda: not world.staff[0].active)

    view = await world.view(task_id)
    assert (S.CANCELLED, None) == (view.task.status, view.result)


async def test_a_thread_that_goes_on_past_its_deadline_ends_cancelled(world: World) -> None:
    await world.hire(concurrency=2)
    task_id = await world.submit("thread", timeout_ms=3_000)
    await world.until(lambda: bool(handlers.runs))

    await ask_to_cancel(world, task_id)
    await world.advance(3.1)

    assert S.CANCELLED == await world.status(task_id)


async def test_a_cancelled_task_whose_worker_dies_is_not_run_again(world: World) -> None:
    await world.age_server()
    first = await world.hire()
    task_id = await world.submit("stubborn")
    first.kill()
    await ask_to_cancel(world, task_id)

    await world.hire()
    await world.advance(40)

    assert S.CANCELLED == await world.status(task_id)
    assert 1 == len(handlers.runs)


async def test_asking_twice_is_answered_alike_and_tells_the_worker_again(world: World) -> None:
    await world.hire(concurrency=2)
    task_id = await world.submit("thread")
    await world.until(lambda: bool(handlers.runs))

    await ask_to_cancel(world, task_id)
    await ask_to_cancel(world, task_id)

    assert 2 == world.link.calls["tell_worker"]


async def test_a_cancel_that_the_worker_cannot_look_up_is_left_to_the_beat(world: World) -> None:
    staff = await world.hire()
    task_id = await world.submit("hold")
    staff.link.lose("extend", Loss.BEFORE)

    await ask_to_cancel(world, task_id)
    assert 1 == len(staff.notes.of("cancellation_unseen"))
    await world.advance(1.1)

    assert S.CANCELLED == await world.status(task_id)
