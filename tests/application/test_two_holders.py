"""Two workers that both hold one entry, of which one stalled before its start, never both run its task."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from dtq.domain.errors import CancelRequested
from dtq.domain.status import TaskStatus
from dtq.domain.task import TaskId
from tests.application import handlers
from tests.application.world import EXPIRING, Staff, World
from tests.factories import OPERATOR, a_lease

S = TaskStatus
VISIBILITY = timedelta(seconds=6)


async def stalled_holder(world: World, **fields: object) -> tuple[Staff, TaskId]:
    """A worker that has read a task and stands still right before it starts it."""
    first = await world.hire(visibility_timeout=VISIBILITY)
    first.link.stall("commit")
    task_id = await world.submit("hold", **EXPIRING, **fields)
    assert S.QUEUED == await world.status(task_id)
    return first, task_id


@pytest.mark.parametrize("max_attempts", [1, 3])
async def test_the_stalled_one_wakes_while_the_other_runs(world: World, max_attempts: int) -> None:
    await world.age_server()
    first, task_id = await stalled_holder(world, max_attempts=max_attempts)
    second = await world.hire(visibility_timeout=VISIBILITY)
    await world.advance(10)
    assert S.RUNNING == await world.status(task_id)

    first.link.go_on()
    await world.advance(3)
    handlers.let_all_go()
    await world.settle()

    assert [second.settings.worker_id] == [context.worker_id for context in handlers.runs]
    assert (S.SUCCEEDED, 1) == ((await world.task(task_id)).status, (await world.task(task_id)).attempt)
    assert [{"requirement": "held"}] == first.notes.of("start_refused")


@pytest.mark.parametrize("max_attempts", [1, 3])
async def test_the_stalled_one_wakes_after_the_other_has_finished(world: World, max_attempts: int) -> None:
    await world.age_server()
    first, task_id = await stalled_holder(world, max_attempts=max_attempts)
    await world.hire(visibility_timeout=VISIBILITY)
    await world.advance(10)
    handlers.let_all_go()
    await world.settle()
    assert S.SUCCEEDED == await world.status(task_id)

    first.link.go_on()
    await world.advance(3)

    assert 1 == len(handlers.runs)
    assert S.SUCCEEDED == await world.status(task_id)
    assert S.SUCCEEDED == await world.status(await world.submit())


async def test_the_first_to_wake_of_two_stalled_ones_runs_it(world: World) -> None:
    await world.age_server()
    first, task_id = await stalled_holder(world)
    second = await world.hire(visibility_timeout=VISIBILITY)
    second.link.stall("commit")
    await world.advance(10)
    assert S.QUEUED == await world.status(task_id)

    for staff in (first, second):
        staff.link.go_on()
        await world.settle()
    handlers.let_all_go()
    await world.advance(10)

    assert [second.settings.worker_id] == [context.worker_id for context in handlers.runs]
    assert (S.SUCCEEDED, 1) == ((await world.task(task_id)).status, (await world.task(task_id)).attempt)


async def test_a_worker_that_was_stopped_past_its_lease_changes_nothing(world: World) -> None:
    await world.age_server()
    first = await world.hire(visibility_timeout=VISIBILITY)
    task_id = await world.submit("hold", payload='{"gate": "first"}')
    first.link.stall("commit", "extend", "release")
    handlers.gate("first").open()
    await world.settle()
    second = await world.hire(visibility_timeout=VISIBILITY)
    await world.advance(20)
    finished = await world.task(task_id)
    assert (S.SUCCEEDED, 2) == (finished.status, finished.attempt)

    first.link.go_on()
    await world.advance(3)

    assert finished == await world.task(task_id)
    assert 1 == len(first.notes.of("result_dropped"))
    assert 1 == second.notes.steps(finished.task_id).count(S.SUCCEEDED)
    assert 0 == await world.pending()


async def test_a_worker_whose_lease_is_lost_stops_its_handler_and_drops_the_result(world: World) -> None:
    await world.age_server()
    first = await world.hire(visibility_timeout=VISIBILITY)
    task_id = await world.submit("hold")
    first.link.stall("extend")
    second = await world.hire(visibility_timeout=VISIBILITY)
    await world.advance(10)
    assert second.settings.worker_id == (await world.task(task_id)).worker_id

    first.link.go_on()
    await world.advance(2)

    assert 1 == len(first.notes.of("lease_lost"))
    assert 0 == first.active
    assert (S.RUNNING, 2) == ((await world.task(task_id)).status, (await world.task(task_id)).attempt)


async def test_a_lost_lease_silences_a_handler_that_was_told_to_stop_before(world: World) -> None:
    first = await world.hire(concurrency=2)
    task_id = await world.submit("thread")
    await world.until(lambda: bool(handlers.runs))
    with pytest.raises(CancelRequested):
        await world.tasks.cancel(task_id, by=OPERATOR)
    await world.settle()

    world.rewrite(replace(await world.task(task_id), lease=a_lease()))
    taken_over = await world.task(task_id)
    await world.advance(2)
    handlers.let_all_go()
    await world.until(lambda: first.free == 2)

    assert 0 == first.active
    assert taken_over == await world.task(task_id)
    assert [] == first.notes.of("result_dropped")
