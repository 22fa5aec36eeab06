"""Lost connections and lost replies: nothing is lost, nothing runs twice, and no process ends."""

import pytest

from dtq.application.settings import ExitCode
from dtq.domain.status import TaskStatus
from dtq.domain.task import TaskId
from dtq.domain.text import class_name
from tests.application import handlers
from tests.application.link import LOSSES, Loss
from tests.application.unnameable import ERRORS
from tests.application.world import EXPIRING, World

S = TaskStatus
ONCE = (S.SUCCEEDED, 1)


async def standing(world: World, task_id: str) -> tuple[TaskStatus, int]:
    task = (await world.tasks.get(task_id)).task
    return task.status, task.attempt


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("method", ["fetch", "wait", "commit", "release", "owned", "extend", "tell_queue"])
async def test_a_call_that_goes_wrong_costs_no_task_and_no_attempt(world: World, method: str, loss: Loss) -> None:
    await world.age_server()
    staff = await world.hire(concurrency=2)
    staff.link.lose(method, loss, times=2)

    ids = [await world.submit(priority=number) for number in range(10)]
    await world.advance(60)

    assert [ONCE] * 10 == [await standing(world, task_id) for task_id in ids]
    assert 10 == len(handlers.runs)
    assert 0 == await world.pending()


@pytest.mark.parametrize("loss", LOSSES)
async def test_a_start_whose_reply_was_lost_runs_once(world: World, loss: Loss) -> None:
    staff = await world.hire()
    staff.link.lose("commit", loss)

    task_id = await world.submit(**EXPIRING)
    await world.advance(5)

    assert ONCE == await standing(world, task_id)
    assert 1 == len(handlers.runs)
    assert [S.RUNNING, S.SUCCEEDED] == staff.notes.steps(handlers.runs[0].task_id)


async def test_a_start_that_is_taken_over_before_its_worker_hears_of_it_is_dropped(world: World) -> None:
    await world.age_server()
    staff = await world.hire()
    staff.link.lose("commit", Loss.AFTER)
    task_id = await world.submit("hold", timeout_ms=300_000, **EXPIRING)
    staff.link.is_down = True
    assert S.RUNNING == await world.status(task_id)
    assert 0 == len(handlers.runs)
    peer = await world.hire()
    await world.advance(60)
    assert peer.settings.worker_id == (await world.task(task_id)).worker_id

    staff.link.is_down = False
    await world.advance(10)

    assert 1 == len(handlers.runs)
    assert 0 == staff.active


@pytest.mark.parametrize("loss", LOSSES)
async def test_a_finish_is_repeated_until_the_broker_takes_it(world: World, loss: Loss) -> None:
    staff = await world.hire()
    task_id = await world.submit("hold")
    staff.link.lose("commit", loss, times=10)

    handlers.let_all_go()
    await world.advance(60)

    assert ONCE == await standing(world, task_id)
    assert [S.RUNNING, S.SUCCEEDED] == staff.notes.steps(handlers.runs[0].task_id)
    assert 0 == staff.active


async def test_an_outage_of_a_minute_ends_no_worker(world: World) -> None:
    await world.age_server()
    staff = await world.hire(concurrency=2)
    running = await world.submit("hold", timeout_ms=300_000)
    staff.link.is_down = True
    waiting = await world.submit()
    delayed = await world.submit(delay_seconds=5)
    await world.advance(60)
    assert not staff.life.done()

    staff.link.is_down = False
    await world.advance(10)
    handlers.let_all_go()
    await world.settle()

    assert [ONCE] * 3 == [await standing(world, task_id) for task_id in (running, waiting, delayed)]
    assert S.SUCCEEDED == await world.status(await world.submit())


async def test_a_task_that_ends_during_an_outage_is_recorded_after_it(world: World) -> None:
    await world.age_server()
    staff = await world.hire()
    task_id = await world.submit("hold", timeout_ms=300_000)
    staff.link.is_down = True
    handlers.let_all_go()
    await world.advance(60)
    assert S.RUNNING == await world.status(task_id)

    staff.link.is_down = False
    await world.advance(6)

    assert ONCE == await standing(world, task_id)


async def test_a_blocking_read_that_failed_in_an_outage_is_not_held_against_the_broker_later(world: World) -> None:
    staff = await world.hire()
    await world.advance(1)
    staff.worker._crew.outage()  # noqa: SLF001 - as the beat does, whose connection breaks first
    staff.link.is_down = True
    await world.advance(5)
    staff.link.is_down = False
    staff.notes.notices.clear()

    await world.advance(5)

    assert [] == [note for note in staff.notes.of("loop_failed") if note["loop"] == "poll"]


@pytest.mark.parametrize("method", ["fetch", "wait", "owned", "take_due", "known", "next_due"])
async def test_an_unknown_fault_ends_no_loop(world: World, method: str) -> None:
    staff = await world.hire()
    staff.link.break_down(method, times=3)

    await world.advance(10)

    assert S.SUCCEEDED == await world.status(await world.submit())
    assert S.SUCCEEDED == await world.status(await submit_delayed(world))
    assert {"UnknownFault"} >= {note["error"] for note in staff.notes.of("loop_failed")}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("method", ["fetch", "next_due", "known", "announce"])
async def test_a_fault_that_cannot_be_named_or_told_ends_no_loop_either(world: World, method: str, error: str) -> None:
    staff = await world.hire()
    staff.link.break_down(method, times=3, by=ERRORS[error])

    await world.advance(10)

    told = [note for what in ("loop_failed", "sweep_failed", "beat_failed") for note in staff.notes.of(what)]
    assert [class_name(ERRORS[error]())] * 3 == [note["error"] for note in told]
    assert S.SUCCEEDED == await world.status(await world.submit())
    assert S.SUCCEEDED == await world.status(await submit_delayed(world))
    assert not staff.life.done()


@pytest.mark.parametrize("error", ERRORS)
async def test_a_fault_in_recording_that_cannot_be_named_costs_no_slot(world: World, error: str) -> None:
    staff = await world.hire(concurrency=1)
    await world.submit("hold")
    # once taken along, once on its own
    staff.link.break_down("commit", by=ERRORS[error], times=2)
    handlers.let_all_go()
    await world.advance(1)

    assert [class_name(ERRORS[error]())] == [note["error"] for note in staff.notes.of("recording_failed")]
    assert S.SUCCEEDED == await world.status(await world.submit())


async def submit_delayed(world: World) -> TaskId:
    task_id = await world.submit(delay_seconds=1)
    await world.advance(2)
    return task_id


async def test_an_unknown_fault_in_recording_costs_the_attempt_and_no_slot(world: World) -> None:
    await world.age_server()
    staff = await world.hire()
    task_id = await world.submit("hold")
    staff.link.break_down("commit", times=2)
    handlers.let_all_go()
    await world.advance(1)
    assert [{"task_id": task_id, "error": "UnknownFault"}] == staff.notes.of("recording_failed")
    assert S.SUCCEEDED == await world.status(await world.submit())

    await world.advance(45)

    assert (S.SUCCEEDED, 2) == await standing(world, task_id)


async def test_a_worker_that_starts_without_a_broker_waits_for_it(world: World) -> None:
    task_id = await world.submit()
    late = await world.hire_unconnected()
    await world.advance(30)
    assert not late.life.done()

    late.link.is_down = False
    await world.advance(6)

    assert ONCE == await standing(world, task_id)
    assert late.notes.of("start_delayed")


async def test_a_first_sign_of_life_whose_reply_was_lost_is_not_taken_for_a_strangers(world: World) -> None:
    late = await world.hire_unconnected()
    late.link.lose("announce", Loss.AFTER, times=3)

    late.link.is_down = False
    await world.advance(10)

    assert not late.life.done()
    assert S.SUCCEEDED == await world.status(await world.submit())


async def test_a_worker_whose_name_is_taken_does_not_start(world: World) -> None:
    first = await world.hire()
    await world.advance(1)

    second = await world.hire(worker_id=first.settings.worker_id)

    assert second.life.done()
    error = second.life.exception()
    assert error is not None
    assert "WORKER_ID_IN_USE" == getattr(error, "code", None)


async def test_entries_left_by_an_earlier_life_under_the_same_name_are_picked_up_at_once(world: World) -> None:
    await world.age_server()
    first = await world.hire()
    task_id = await world.submit("hold")
    first.kill()
    await world.advance(16)
    handlers.let_all_go()

    await world.hire(worker_id=first.settings.worker_id)

    assert (S.SUCCEEDED, 2) == await standing(world, task_id)


async def test_a_start_whose_reply_was_lost_is_run_even_by_a_worker_that_drains(world: World) -> None:
    staff = await world.hire()
    staff.link.lose("commit", Loss.AFTER)
    task_id = await world.submit("hold", **EXPIRING)
    assert 0 == staff.active

    staff.stop()
    await world.advance(1)
    assert 1 == staff.active
    handlers.let_all_go()
    await world.settle()

    assert ExitCode.DRAINED == staff.life.result()
    assert ONCE == await standing(world, task_id)
