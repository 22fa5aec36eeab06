"""The leader's sweeps clear away what is left behind, and keep what waits."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from dtq.application.loops import upkeep
from dtq.domain.admission import DEFAULT_QUEUE
from dtq.domain.events import Event, EventType
from dtq.domain.retention import LIVING
from dtq.domain.status import TaskStatus
from dtq.domain.task import QueueName, TaskId
from tests.application import handlers
from tests.application.link import Loss
from tests.application.world import World
from tests.factories import OPERATOR, QUEUE, a_heartbeat

S = TaskStatus
DAY = 86_400


async def test_a_silent_worker_is_told_of_once_and_removed(world: World) -> None:
    dead = await world.hire()
    leader = await world.hire()
    await world.hire()
    await world.advance(1)
    dead.kill()

    async with world.backend.events.subscribe() as events:
        await world.advance(60)
        last = await world.submit()
        heard: list[Event] = []
        while not heard or heard[-1].task_id != last:
            heard.append(await anext(events))

    stale = [event for event in heard if event.type is EventType.WORKER_STALE]
    assert [dead.settings.worker_id] == [event.worker_id for event in stale]
    assert stale == [event for event in leader.notes.events if event.type is EventType.WORKER_STALE]
    assert dead.settings.worker_id not in await world.backend.workers.known()
    assert leader.settings.worker_id in await world.backend.workers.known()


async def test_a_silent_worker_is_seen_as_stale_before_it_is_removed(world: World) -> None:
    dead = await world.hire()
    await world.hire()
    await world.advance(1)
    dead.kill()

    await world.advance(25)

    assert await world.backend.workers.get(dead.settings.worker_id) is None
    assert dead.settings.worker_id in await world.backend.workers.known()


async def test_a_worker_that_falls_silent_a_second_time_is_seen_as_stale_a_second_time(world: World) -> None:
    dead = (await world.hire()).settings.worker_id
    await world.hire()
    await world.advance(1)
    world.staff[0].kill()
    await world.advance(25)
    back = a_heartbeat(worker_id=dead, started_at=world.clock.now())
    assert await world.backend.workers.announce(back, expires_in=timedelta(seconds=6))

    await world.advance(14)

    assert await world.backend.workers.get(dead) is None
    assert dead in await world.backend.workers.known()
    await world.advance(20)
    assert dead not in await world.backend.workers.known()


async def test_consumers_of_workers_that_are_gone_are_dropped_unless_they_own_something(world: World) -> None:
    idle, busy = await world.hire(), await world.hire()
    await world.advance(1)
    stays = await world.hire(queue=QueueName("other"))
    await world.queues.pause(QUEUE, by=OPERATOR)
    owner = busy.settings.worker_id
    idle.kill()
    busy.kill()
    await world.submit()
    world.state.queue(QUEUE).bands[5].read(owner=owner, now=1e9, limit=1)

    await world.advance(200)

    assert {owner} == world.state.queue(QUEUE).consumers
    assert {stays.settings.worker_id} == world.state.queue(QueueName("other")).consumers


async def test_an_empty_queue_that_nobody_serves_is_forgotten(world: World) -> None:
    await world.hire()
    served = await world.hire(queue=QueueName("served"))
    for queue in ("empty", "waiting", "later"):
        await world.backend.queues.register(QueueName(queue))
    await world.submit(queue="waiting")
    await world.submit(queue="later", delay_seconds=3600)
    await world.backend.queues.register(QueueName("paused"))
    await world.queues.pause("paused", by=OPERATOR)

    await world.advance(70)

    assert ["default", "later", "paused", "served", "waiting"] == list(await world.queues.names())
    assert not served.life.done()


async def test_the_queue_that_submissions_go_to_unasked_is_never_forgotten(world: World) -> None:
    await world.backend.queues.register(DEFAULT_QUEUE)
    await world.hire(queue=QueueName("served"))

    await world.advance(70)

    assert [DEFAULT_QUEUE, "served"] == list(await world.queues.names())


async def test_marks_of_cancelled_tasks_are_dropped_once_no_entry_needs_them(world: World) -> None:
    for _ in range(150):
        task_id = await world.submit_quietly()
        await world.tasks.cancel(task_id, by=OPERATOR)
    assert 150 == len(list(world.state.marks))

    await world.hire()
    await world.advance(70)

    assert [] == list(world.state.marks)


async def test_a_task_that_waits_for_weeks_is_kept_with_its_idempotency_record(world: World) -> None:
    await world.queues.pause(QUEUE, by=OPERATOR)
    task_id = await world.submit(idempotency_key="key-1")
    await world.hire()

    for _ in range(3 * 24 + 2):
        await jump(world, 3600)
    await world.queues.resume(QUEUE, by=OPERATOR)
    await world.advance(1)

    assert S.SUCCEEDED == await world.status(task_id)
    assert (await world.tasks.submit({"task_type": "note", "payload": "{}", "idempotency_key": "key-1"})).duplicate


async def jump(world: World, seconds: float) -> None:
    """Let much time pass for the broker at once, and some for everybody else."""
    world.let_pass(seconds)
    await world.advance(2)


def empty_streams(world: World) -> None:
    for stream in world.state.queue(QUEUE).bands.values():
        for entry_id in list(stream.entries):
            stream.remove(entry_id)


async def test_a_live_task_without_a_place_gets_one_again(world: World) -> None:
    waiting, delayed = await world.submit(), await world.submit(delay_seconds=60)
    empty_streams(world)
    world.state.schedule.clear()
    staff = await world.hire()
    await world.advance(4)
    assert [S.QUEUED, S.PENDING] == [await world.status(waiting), await world.status(delayed)]

    await world.advance(130)

    assert [S.SUCCEEDED] * 2 == [await world.status(waiting), await world.status(delayed)]
    assert 2 == len(staff.notes.of("task_rehomed"))


async def test_a_running_task_that_lost_its_place_and_its_worker_runs_again(world: World) -> None:
    await world.age_server()
    first = await world.hire()
    task_id = await world.submit("hold")
    first.kill()
    empty_streams(world)
    handlers.let_all_go()

    await world.hire()
    await world.advance(130)

    assert (S.SUCCEEDED, 2) == ((await world.task(task_id)).status, (await world.task(task_id)).attempt)


async def test_a_task_that_changed_since_it_seemed_lost_must_be_seen_twice_again(world: World) -> None:
    leader = await world.hire()
    await world.submit(delay_seconds=1000)
    (task_id,) = world.state.schedule
    world.state.schedule.clear()
    await world.advance(121)

    world.rewrite(await world.task(task_id))
    await world.advance(100)
    assert [] == leader.notes.of("task_rehomed")
    await world.advance(30)

    assert [{"task_id": task_id, "status": "pending"}] == leader.notes.of("task_rehomed")


async def test_a_task_that_vanishes_after_it_seemed_lost_is_let_go(world: World) -> None:
    leader = await world.hire()
    task_id = await world.submit(delay_seconds=1000)
    world.state.schedule.clear()
    await world.advance(121)

    world.state.records.remove(task_id)
    await world.advance(10)

    assert [] == leader.notes.of("task_rehomed")
    assert [] == leader.notes.of("loop_failed")


async def test_a_lost_task_that_cannot_be_read_keeps_no_other_from_its_place(world: World) -> None:
    leader = await world.hire()
    spoiled, whole = [await world.submit(delay_seconds=1000) for _ in range(2)]
    world.state.schedule.clear()
    await world.advance(121)

    world.state.faults.garbled.add(spoiled)
    await world.advance(20)

    assert [{"task_id": whole, "status": "pending"}] == leader.notes.of("task_rehomed")
    assert 1 == len(leader.notes.of("sweep_failed"))


async def test_what_a_dead_leader_took_on_loan_comes_back_after_a_minute(world: World) -> None:
    task_id = await world.submit(delay_seconds=1)
    await world.advance(2)
    world.state.schedule[task_id] = replace(world.state.schedule[task_id], claimed_at=world.clock.now())
    await world.hire()

    await world.advance(59)
    assert S.PENDING == await world.status(task_id)
    await world.advance(7)

    assert S.SUCCEEDED == await world.status(task_id)


async def test_only_the_leader_sweeps(world: World) -> None:
    leader, other = await world.hire(), await world.hire()

    await world.advance(70)

    sweeps = ("return_stale", "strays", "drop_consumers", "drop_marks", "keep_alive")
    assert all(leader.link.calls[sweep] for sweep in sweeps)
    assert not any(other.link.calls[sweep] for sweep in sweeps)


async def test_a_task_that_moves_on_after_it_seemed_lost_is_left_alone(world: World) -> None:
    await world.age_server()
    leader = await world.hire()
    task_id = await world.submit(delay_seconds=100)
    slot = world.state.schedule.pop(task_id)
    await world.advance(121)

    world.state.schedule[task_id] = slot
    await world.advance(10)

    assert [] == leader.notes.of("task_rehomed")


async def five_old_tasks(world: World, monkeypatch: pytest.MonkeyPatch) -> list[TaskId]:
    """Tasks that wait for so long that they are to be renewed, more of them than one step renews."""
    monkeypatch.setattr(upkeep, "_KEEP_ALIVE_LIMIT", 2)
    await world.queues.pause(QUEUE, by=OPERATOR)
    tasks = [await world.submit() for _ in range(5)]
    world.let_pass(13 * 3600)
    return tasks


async def test_a_long_queue_is_kept_alive_part_by_part_and_then_left_for_an_hour(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = await five_old_tasks(world, monkeypatch)

    leader = await world.hire()
    await world.advance(3)

    renewed = [world.state.records.time_left(task_id) for task_id in tasks]
    assert all(left is not None and left > LIVING.task - timedelta(minutes=1) for left in renewed)
    assert 3 == leader.link.calls["keep_alive"]
    await world.advance(600)
    assert 3 == leader.link.calls["keep_alive"]
    world.let_pass(3600)
    await world.advance(3)
    assert 6 == leader.link.calls["keep_alive"]


async def test_what_was_left_when_the_broker_was_gone_is_kept_alive_when_it_is_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = await five_old_tasks(world, monkeypatch)

    leader = await world.hire()
    leader.link.lose("keep_alive", Loss.BEFORE, times=2)
    await world.advance(60)

    renewed = [world.state.records.time_left(task_id) for task_id in tasks]
    assert all(left is not None and left > LIVING.task - timedelta(minutes=2) for left in renewed)
