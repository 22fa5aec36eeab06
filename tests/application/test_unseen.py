"""Tasks that the fetch which brings them starts unseen: what is run, and what becomes of it where no reply comes."""

import pytest

from dtq.application.settings import ExitCode
from dtq.domain.errors import CancelRequested
from dtq.domain.status import TaskStatus
from tests.application import handlers
from tests.application.link import LOSSES, Loss
from tests.application.test_outages import ONCE, standing
from tests.application.world import EXPIRING, World
from tests.factories import OPERATOR, QUEUE

S = TaskStatus


async def test_a_task_is_started_by_the_fetch_that_brings_it(world: World) -> None:
    staff = await world.hire()
    commits = staff.link.calls["commit"]

    task_id = await world.submit("hold")

    assert (S.RUNNING, 1, commits) == (await world.status(task_id), staff.active, staff.link.calls["commit"])
    assert [S.RUNNING] == staff.notes.steps(task_id)


async def test_one_whose_start_is_not_made_is_started_by_itself(world: World) -> None:
    staff = await world.hire()
    world.state.faults.writes_left = 0

    task_id = await world.submit_quietly()
    await world.settle()

    assert ONCE == await standing(world, task_id)
    assert [S.RUNNING, S.SUCCEEDED] == staff.notes.steps(task_id)


async def test_one_that_is_to_be_looked_at_first_is_started_beside_it(world: World) -> None:
    staff = await world.hire(concurrency=4)
    staff.link.stall("fetch")
    ids = [await world.submit("hold", **fields) for fields in ({}, EXPIRING, {})]

    staff.link.go_on()
    await world.settle()

    assert [S.RUNNING] * 3 == [await world.status(task_id) for task_id in ids]
    assert 3 == staff.active


async def test_a_recovery_asks_for_no_starts_where_every_fetch_was_answered(world: World) -> None:
    staff = await world.hire()
    await world.submit("hold")
    owned = staff.link.calls["owned"]
    staff.link.lose("announce", Loss.BEFORE)

    await world.advance(6)

    assert (owned + 1, 0) == (staff.link.calls["owned"], staff.link.calls["begun"])


@pytest.mark.parametrize("loss", LOSSES)
async def test_a_fetch_whose_reply_was_lost_runs_its_tasks_once(world: World, loss: Loss) -> None:
    staff = await world.hire()
    staff.link.lose("fetch", loss)

    task_id = await world.submit()
    await world.advance(5)

    assert ONCE == await standing(world, task_id)
    assert 1 == len(handlers.runs)
    assert [S.RUNNING, S.SUCCEEDED] == staff.notes.steps(task_id)


async def test_it_is_found_though_the_broker_is_silent_when_it_is_looked_for(world: World) -> None:
    staff = await world.hire()
    staff.link.lose("fetch", Loss.AFTER)
    staff.link.lose("begun", Loss.BEFORE, times=2)

    task_id = await world.submit()
    await world.advance(10)

    assert ONCE == await standing(world, task_id)
    assert 1 == len(handlers.runs)


async def test_it_is_run_though_its_queue_was_paused_meanwhile(world: World) -> None:
    staff = await world.hire()
    staff.link.lose("fetch", Loss.AFTER)
    staff.link.stall("begun")
    task_id = await world.submit()
    await world.queues.pause(QUEUE, by=OPERATOR)

    staff.link.go_on()
    await world.advance(5)

    assert ONCE == await standing(world, task_id)


async def test_it_is_run_even_by_a_worker_that_drains(world: World) -> None:
    staff = await world.hire()
    staff.link.lose("fetch", Loss.AFTER)
    staff.link.stall("begun")
    task_id = await world.submit("hold")
    assert (S.RUNNING, 0) == (await world.status(task_id), staff.active)

    staff.stop()
    staff.link.go_on()
    await world.advance(5)
    assert 1 == staff.active
    handlers.let_all_go()
    await world.settle()

    assert ExitCode.DRAINED == staff.life.result()
    assert ONCE == await standing(world, task_id)


async def test_what_a_fetch_under_way_starts_is_run_by_a_worker_that_drains(world: World) -> None:
    staff = await world.hire()
    staff.link.stall("fetch")
    task_id = await world.submit("hold")

    staff.stop()
    staff.link.go_on()
    await world.settle()
    assert (S.RUNNING, 1) == (await world.status(task_id), staff.active)
    handlers.let_all_go()
    await world.advance(1)

    assert ExitCode.DRAINED == staff.life.result()
    assert ONCE == await standing(world, task_id)


async def test_one_that_a_peer_has_taken_over_before_its_worker_hears_of_it_is_dropped(world: World) -> None:
    await world.age_server()
    staff = await world.hire()
    staff.link.lose("fetch", Loss.AFTER)
    task_id = await world.submit("hold", timeout_ms=300_000)
    staff.link.is_down = True
    assert (S.RUNNING, 0) == (await world.status(task_id), len(handlers.runs))
    peer = await world.hire()
    await world.advance(60)
    assert peer.settings.worker_id == (await world.task(task_id)).worker_id

    staff.link.is_down = False
    await world.advance(10)

    assert (1, 0) == (len(handlers.runs), staff.active)


async def test_one_whose_cancellation_is_asked_for_before_its_worker_hears_of_it_is_cancelled(world: World) -> None:
    staff = await world.hire()
    staff.link.lose("fetch", Loss.AFTER)
    staff.link.stall("begun")
    task_id = await world.submit("hold")
    with pytest.raises(CancelRequested):
        await world.tasks.cancel(task_id, by=OPERATOR)

    staff.link.go_on()
    await world.advance(10)

    assert (S.CANCELLED, 0) == (await world.status(task_id), staff.active)


async def test_a_sweep_that_could_not_read_all_looks_for_what_it_may_have_started(world: World) -> None:
    staff = await world.hire(concurrency=4)
    world.state.faults.spoiled.add((QUEUE, 0))
    looks = staff.link.calls["begun"]

    task_id = await world.submit("hold", priority=9)
    await world.advance(5)

    assert looks < staff.link.calls["begun"]
    assert (S.RUNNING, 1) == (await world.status(task_id), len(handlers.runs))
    assert [S.RUNNING] == staff.notes.steps(task_id)


async def test_where_all_was_heard_of_nothing_is_looked_for(world: World) -> None:
    staff = await world.hire()
    await world.submit()
    looks = staff.link.calls["begun"]

    staff.link.lose("extend", Loss.BEFORE)
    await world.submit()
    await world.advance(30)

    assert looks == staff.link.calls["begun"]
