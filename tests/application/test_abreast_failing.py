"""Fetches abreast of which one fails, or whose worker stops: what becomes of what they took."""

import pytest

from dtq.domain.status import TaskStatus
from tests.application import handlers
from tests.application.link import Loss
from tests.application.rush import behind, delay_second_answer, lose_all_leases, open_both_gates
from tests.application.world import EXPIRING, World

S = TaskStatus


async def test_after_an_outage_that_only_one_of_them_has_met_the_worker_is_cautious(world: World) -> None:
    staff = await behind(world)
    await world.advance(15)
    reaping = staff.worker._crew.reaping  # noqa: SLF001 - a caution shows in what is not done for some seconds
    assert staff.settings.visibility_timeout == reaping.idle
    staff.link.lose("fetch", Loss.GARBLED)
    staff.link.lose("fetch", Loss.BEFORE)
    # so that neither of them carries an end, which would tell of the outage, too
    lose_all_leases(staff)
    await world.settle()

    staff.link.go_on()
    await world.advance(3)

    assert staff.settings.visibility_timeout < reaping.idle


async def test_while_one_is_under_way_the_worker_hands_nothing_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    staff = await behind(world)
    answered = delay_second_answer(world, monkeypatch)
    staff.link.lose("fetch", Loss.AFTER)
    handlers.gate("first").open()
    await world.settle()

    staff.link.go_on()
    await world.advance(3)
    answered.set()
    handlers.gate("second").open()
    await world.advance(3)

    assert (8, 0) == (len(handlers.runs), staff.link.calls["release"])
    assert 1 == len(staff.notes.of("loop_failed"))


@pytest.mark.parametrize("loss", Loss)
async def test_where_one_of_them_fails_all_that_they_took_runs_once(world: World, loss: Loss) -> None:
    staff = await behind(world)
    staff.link.lose("fetch", loss)
    open_both_gates()
    await world.settle()

    staff.link.go_on()
    await world.advance(10)

    assert 8 == len(handlers.runs) == len({run.task_id for run in handlers.runs})
    assert {1} == {run.attempt for run in handlers.runs}
    assert {S.SUCCEEDED} == {await world.status(run.task_id) for run in handlers.runs}
    assert 4 == staff.free
    assert 1 == len(staff.notes.of("loop_failed"))


async def test_of_those_that_fail_each_is_told_of(world: World) -> None:
    staff = await behind(world)
    staff.link.lose("fetch", Loss.AFTER)
    staff.link.lose("fetch", Loss.GARBLED)
    open_both_gates()
    await world.settle()

    staff.link.go_on()
    await world.advance(10)

    assert ["OutcomeUnknown", "UnknownFault"] == [note["error"] for note in staff.notes.of("loop_failed")]
    assert 8 == len({run.task_id for run in handlers.runs}) == len(handlers.runs)


async def test_a_worker_that_is_to_stop_drains_what_they_take(world: World) -> None:
    staff = await behind(world)
    handlers.gate("first").open()
    await world.settle()

    staff.stop()
    staff.link.go_on()
    await world.settle()
    assert 4 == staff.active
    handlers.gate("second").open()
    await world.settle()

    assert 0 == staff.life.result()
    assert {S.SUCCEEDED} == {await world.status(run.task_id) for run in handlers.runs}


async def test_what_they_take_that_is_looked_at_first_does_not_start_once_the_worker_is_to_stop(world: World) -> None:
    staff = await behind(world, submitted=EXPIRING)
    handlers.gate("first").open()
    await world.settle()

    staff.stop()
    staff.link.go_on()
    await world.settle()

    assert 0 == staff.life.result()
    assert 4 == len(handlers.runs)
    other = await world.hire(concurrency=4)
    assert 4 == other.active


async def test_a_worker_that_ends_at_once_lets_go_of_them(world: World) -> None:
    staff = await behind(world)
    handlers.gate("first").open()
    await world.settle()

    staff.stop()
    staff.stop()
    await world.settle()
    staff.link.go_on()
    await world.settle()

    assert staff.life.done()
    assert 4 == len(handlers.runs)


async def test_a_loop_that_cannot_look_at_what_it_owns_keeps_no_end_from_being_recorded(world: World) -> None:
    staff = await world.hire(concurrency=2)
    ids = [await world.submit("hold") for _ in range(2)]
    staff.link.stall("owned")
    handlers.let_all_go()
    staff.worker._crew.outage()  # noqa: SLF001 - as the beat would find it, in the same moment
    await world.settle()

    assert [S.SUCCEEDED] * 2 == [await world.status(task_id) for task_id in ids]
