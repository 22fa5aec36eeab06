"""Work whose owner went silent is taken over, soon, within the capacity, and never from somebody who lives."""

from datetime import timedelta

import pytest

from dtq.domain.status import TaskStatus
from tests.application import handlers
from tests.application.link import Loss
from tests.application.world import WatchedBeat, World
from tests.factories import QUEUE

S = TaskStatus


async def test_the_tasks_of_a_killed_worker_run_again_within_1_3_visibility_timeouts(world: World) -> None:
    await world.age_server()
    first = await world.hire(concurrency=4, visibility_timeout=timedelta(seconds=6))
    ids = [await world.submit("hold") for _ in range(4)]
    await world.hire(concurrency=4, visibility_timeout=timedelta(seconds=6))
    first.kill()
    handlers.let_all_go()

    await world.advance(1.3 * 6)

    assert [(S.SUCCEEDED, 2)] * 4 == [((await world.task(one)).status, (await world.task(one)).attempt) for one in ids]


async def test_a_lost_last_attempt_is_not_run_again(world: World) -> None:
    await world.age_server()
    first = await world.hire()
    task_id = await world.submit("hold", max_attempts=1)
    first.kill()

    await world.hire()
    await world.advance(40)

    task = await world.task(task_id)
    assert S.DEAD_LETTERED == task.status
    assert task.failure is not None
    assert "WorkerLost" == task.failure.error_class
    assert 1 == len(handlers.runs)


async def test_a_worker_with_less_room_than_was_left_behind_goes_on_reaping(world: World) -> None:
    await world.age_server()
    first = await world.hire(concurrency=5)
    ids = [await world.submit("hold") for _ in range(5)]
    await world.hire(concurrency=1)
    first.kill()
    handlers.let_all_go()

    await world.advance(1.3 * 30)

    assert [(S.SUCCEEDED, 2)] * 5 == [((await world.task(one)).status, (await world.task(one)).attempt) for one in ids]


async def test_a_newcomer_takes_nothing_from_peers_that_were_all_stopped_until_now(world: World) -> None:
    await world.age_server()
    await world.hire()
    task_id = await world.submit("hold", timeout_ms=600_000)
    world.let_pass(45)

    await world.hire()
    await world.advance(10)

    assert (S.RUNNING, 1) == ((await world.task(task_id)).status, (await world.task(task_id)).attempt)


async def test_a_long_task_is_not_taken_from_a_worker_that_lives(world: World) -> None:
    await world.age_server()
    await world.hire()
    task_id = await world.submit("hold", timeout_ms=600_000)
    await world.hire()

    await world.advance(300)

    assert (S.RUNNING, 1) == ((await world.task(task_id)).status, (await world.task(task_id)).attempt)


async def test_reaping_takes_no_more_than_there_are_slots(world: World) -> None:
    await world.age_server()
    first = await world.hire(concurrency=5)
    for _ in range(5):
        await world.submit("hold")
    first.kill()

    second = await world.hire(concurrency=2)
    await world.advance(40)

    assert 7 == len(handlers.runs)
    owned = await world.backend.broker.owned(second.settings.queue, worker=second.settings.worker_id)
    assert 2 == len(owned)


async def test_abandoned_work_of_a_band_comes_before_its_fresh_work_and_after_higher_bands(world: World) -> None:
    await world.age_server()
    first = await world.hire()
    lost = await world.submit("hold", priority=5)
    second = await world.hire(concurrency=3)
    first.kill()
    second.link.stall("fetch", "wait")
    await world.advance(35)
    fresh = await world.submit("hold", priority=5)
    higher = await world.submit("hold", priority=6)
    handlers.runs.clear()

    second.link.go_on()
    await world.settle()

    assert [higher, lost, fresh] == [context.task_id for context in handlers.runs]


async def test_a_young_server_makes_workers_hold_back_for_two_heartbeats(world: World) -> None:
    first = await world.hire(visibility_timeout=timedelta(seconds=4), heartbeat_interval=timedelta(seconds=2))
    task_id = await world.submit("hold", max_attempts=2)
    first.kill()
    await world.advance(100)
    world.state.started_at = world.clock.monotonic()
    handlers.let_all_go()

    await world.hire(visibility_timeout=timedelta(seconds=4), heartbeat_interval=timedelta(seconds=2))
    await world.advance(3.9)
    assert S.RUNNING == await world.status(task_id)
    await world.advance(0.2)

    assert S.SUCCEEDED == await world.status(task_id)


async def test_a_worker_that_had_to_wait_for_its_broker_holds_back_for_two_heartbeats(world: World) -> None:
    await world.age_server()
    first = await world.hire()
    task_id = await world.submit("hold")
    late = await world.hire_unconnected()
    first.kill()
    await world.advance(60)
    handlers.let_all_go()

    late.link.is_down = False
    await world.advance(5 + 4)
    assert S.RUNNING == await world.status(task_id)
    await world.advance(10)

    assert S.SUCCEEDED == await world.status(task_id)


async def test_what_was_handed_back_is_taken_even_while_holding_back(world: World) -> None:
    await world.hire(concurrency=1)
    fields = {"task_type": "note", "payload": "{}"}

    await world.tasks.submit_many([{**fields, "priority": priority} for priority in range(10)])
    await world.settle()

    assert 10 == len(handlers.runs)


async def test_after_an_outage_nothing_is_reaped_for_two_heartbeats(world: World) -> None:
    await world.age_server()
    first = await world.hire()
    task_id = await world.submit("hold")
    second = await world.hire()
    first.kill()
    await world.advance(1)
    second.link.is_down = True
    await world.advance(60)
    handlers.let_all_go()

    second.link.is_down = False
    await world.advance(5)
    recovered_at = world.clock.monotonic()
    await world.advance(4)
    assert S.RUNNING == await world.status(task_id)
    await world.advance(12)

    assert S.SUCCEEDED == await world.status(task_id)
    assert world.clock.monotonic() - recovered_at < 20


async def test_a_running_task_survives_an_outage_of_its_worker_without_losing_an_attempt(world: World) -> None:
    await world.age_server()
    staff = [await world.hire(), await world.hire()]
    task_id = await world.submit("hold", timeout_ms=300_000)
    for one in staff:
        one.link.is_down = True
    await world.advance(60)

    for one in staff:
        one.link.is_down = False
    await world.advance(60)
    handlers.let_all_go()
    await world.settle()

    assert (S.SUCCEEDED, 1) == ((await world.task(task_id)).status, (await world.task(task_id)).attempt)
    assert 1 == len(handlers.runs)


async def test_a_jump_of_the_brokers_clock_makes_workers_hold_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.age_server()
    first = await world.hire()
    task_id = await world.submit("hold")
    second = await world.hire()
    first.kill()
    await world.advance(15)
    now = world.clock.now
    monkeypatch.setattr(world.clock, "now", lambda: now() + timedelta(seconds=60))

    await world.advance(29)
    assert (S.RUNNING, 1) == ((await world.task(task_id)).status, (await world.task(task_id)).attempt)
    assert [{"queue": "default"}] == second.notes.of("clock_jumped")
    handlers.let_all_go()
    await world.advance(20)

    assert (S.SUCCEEDED, 2) == ((await world.task(task_id)).status, (await world.task(task_id)).attempt)


@pytest.mark.parametrize("off", [0.9, -0.9])
async def test_a_clock_that_is_less_than_a_second_off_has_not_jumped(
    world: World, monkeypatch: pytest.MonkeyPatch, off: float
) -> None:
    await world.age_server()
    first = await world.hire()
    task_id = await world.submit("hold")
    second = await world.hire()
    first.kill()
    handlers.let_all_go()
    await world.advance(15)
    now = world.clock.now
    monkeypatch.setattr(world.clock, "now", lambda: now() + timedelta(seconds=off))

    await world.advance(25)

    assert [] == second.notes.of("clock_jumped")
    assert (S.SUCCEEDED, 2) == ((await world.task(task_id)).status, (await world.task(task_id)).attempt)


async def test_what_was_reaped_by_a_clock_that_jumped_is_left_to_its_owner(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.age_server()
    first = await world.hire(beat=WatchedBeat([]))
    task_id = await world.submit("hold", timeout_ms=300_000)
    second = await world.hire()
    await world.advance(29)
    now = world.clock.now
    monkeypatch.setattr(world.clock, "now", lambda: now() + timedelta(seconds=60))

    await world.advance(20)

    assert 1 == len(second.notes.of("clock_jumped"))
    assert (first.settings.worker_id, 1) == ((await world.task(task_id)).worker_id, (await world.task(task_id)).attempt)


async def test_a_worker_ignores_its_own_entry_where_it_reaps_it(world: World) -> None:
    await world.age_server()
    await world.hire(concurrency=2, beat=WatchedBeat([]))
    task_id = await world.submit("hold", timeout_ms=300_000)

    await world.advance(45)
    handlers.let_all_go()
    await world.settle()

    assert (S.SUCCEEDED, 1) == ((await world.task(task_id)).status, (await world.task(task_id)).attempt)
    assert 1 == len(handlers.runs)


async def test_after_an_outage_a_worker_wins_its_leases_back_before_anything_else(world: World) -> None:
    await world.age_server()
    first = await world.hire(beat=WatchedBeat([]))
    task_id = await world.submit("hold", timeout_ms=300_000)
    first.link.is_down = True
    second = await world.hire()
    second.link.stall("commit")
    await world.advance(45)
    assert 1 == len(await world.backend.broker.owned(QUEUE, worker=second.settings.worker_id))

    first.link.is_down = False
    await world.advance(5)
    second.link.go_on()
    await world.settle()

    assert first.settings.worker_id == (await world.task(task_id)).worker_id
    assert [{"requirement": "held"}] == second.notes.of("start_refused")


async def test_an_outage_that_only_the_beat_has_met_makes_a_worker_cautious(world: World) -> None:
    await world.age_server()
    staff = await world.hire()
    await world.advance(60)
    reaping = staff.worker._crew.reaping  # noqa: SLF001 - as long as nothing is silent, its caution shows nowhere else
    assert staff.settings.visibility_timeout == reaping.idle

    staff.link.lose("announce", Loss.BEFORE)
    await world.advance(staff.settings.heartbeat_interval.total_seconds())

    assert reaping.idle > staff.settings.visibility_timeout
