"""What becomes of an entry that is not simply the next to run."""

import pytest

from dtq.domain.entry import entry_fields
from dtq.domain.events import EventType
from dtq.domain.status import TaskStatus
from dtq.domain.task import Receipt, Task
from tests.application import handlers
from tests.application.link import Loss
from tests.application.world import World
from tests.factories import OPERATOR, QUEUE

S = TaskStatus


def add_entry(world: World, task: Task) -> Receipt:
    """A second entry of a task, as a failover would leave it."""
    fields = entry_fields(task) | {"payload": task.payload or "{}"}
    return Receipt(task.queue, task.priority, world.state.add_entry(task.queue, task.priority, fields))


async def depth(world: World) -> int:
    return (await world.backend.queues.stats(QUEUE)).depth


async def test_a_second_entry_of_a_live_task_is_absorbed(world: World) -> None:
    task_id = await world.submit("hold")
    add_entry(world, await world.task(task_id))
    async with world.backend.events.subscribe() as events:
        await world.hire(concurrency=4)
        heard = [await anext(events) for _ in range(3)]

    assert EventType.DUPLICATE_ABSORBED in {event.type for event in heard}
    assert (1, 1) == (len(handlers.runs), await depth(world))


async def test_an_entry_of_a_task_that_has_ended_is_removed(world: World) -> None:
    task_id = await world.submit()
    ended = await world.task(task_id)
    await world.hire()
    assert S.SUCCEEDED == await world.status(task_id)

    add_entry(world, ended)
    await world.advance(1)

    assert (1, 0) == (len(handlers.runs), await depth(world))


async def test_an_acknowledgement_that_came_too_late_is_judged_again(world: World) -> None:
    staff = await world.hire(concurrency=2)
    task_id = await world.submit("hold")
    staff.link.stall("acknowledge")
    add_entry(world, await world.task(task_id))
    await world.settle()
    handlers.let_all_go()
    await world.settle()

    staff.link.go_on()
    await world.advance(2)

    assert (S.SUCCEEDED, 0) == (await world.status(task_id), await depth(world))
    assert 1 == len(handlers.runs)


async def test_a_task_whose_record_is_gone_is_rebuilt_and_run(world: World) -> None:
    task_id = await world.submit(payload='{"kept": true}')
    world.state.records.remove(task_id)

    await world.hire()

    view = await world.view(task_id)
    assert (S.SUCCEEDED, 1, '{"kept":true}') == (view.task.status, view.task.attempt, view.result)


async def test_a_cancelled_task_whose_record_is_gone_is_not_run(world: World) -> None:
    staff = await world.hire()
    staff.link.stall("fetch")
    task_id = await world.submit()
    task = await world.task(task_id)
    await world.tasks.cancel(task_id, by=OPERATOR)
    world.state.records.remove(task_id)
    add_entry(world, task)

    staff.link.go_on()
    await world.advance(1)

    assert [] == handlers.runs
    assert 0 == await depth(world)


@pytest.mark.parametrize("spoilt", [{"task_id": "none"}, {"attempt": "many"}, {"queue": "other"}])
async def test_an_entry_that_names_no_task_is_buried(world: World, spoilt: dict[str, str]) -> None:
    task_id = await world.submit()
    fields = entry_fields(await world.task(task_id)) | {"payload": "{}"} | spoilt
    world.state.records.remove(task_id)
    for stream in world.state.queue(QUEUE).bands.values():
        stream.entries = dict.fromkeys(stream.entries, fields)

    staff = await world.hire()

    (letter,) = await world.dead_letters.recent(limit=10)
    assert "malformed_entry" == letter.fields["last_error"]
    assert (0, []) == (await depth(world), handlers.runs)
    assert 1 == len(staff.notes.of("malformed_entry"))


async def test_a_task_that_expired_in_its_queue_is_not_run(world: World) -> None:
    task_id = await world.submit(metadata='{"ttl_seconds": 5}')
    await world.advance(6)

    staff = await world.hire()

    assert S.EXPIRED == await world.status(task_id)
    assert [S.EXPIRED] == staff.notes.steps(task_id)
    assert [] == handlers.runs


async def test_a_task_that_changes_between_sweep_and_start_is_decided_again(world: World) -> None:
    staff = await world.hire()
    staff.link.stall("commit")
    task_id = await world.submit()
    world.rewrite(await world.task(task_id))

    staff.link.go_on()
    await world.settle()

    assert (S.SUCCEEDED, '{"n":1}') == (await world.status(task_id), (await world.view(task_id)).result)


async def test_a_task_that_vanishes_between_sweep_and_start_is_rebuilt(world: World) -> None:
    staff = await world.hire()
    staff.link.stall("commit")
    task_id = await world.submit()
    world.state.records.remove(task_id)

    staff.link.go_on()
    await world.settle()

    assert S.SUCCEEDED == await world.status(task_id)


async def test_a_task_that_is_cancelled_between_sweep_and_start_is_not_run(world: World) -> None:
    staff = await world.hire()
    staff.link.stall("commit")
    task_id = await world.submit()
    await world.tasks.cancel(task_id, by=OPERATOR)

    staff.link.go_on()
    await world.advance(1)

    assert (S.CANCELLED, []) == (await world.status(task_id), handlers.runs)


async def test_a_start_that_stops_half_way_is_repeated(world: World) -> None:
    staff = await world.hire()
    world.state.faults.writes_left = 2

    task_id = await world.submit_quietly()
    await world.settle()

    assert S.SUCCEEDED == await world.status(task_id)
    assert [S.RUNNING, S.SUCCEEDED] == staff.notes.steps(task_id)


async def test_a_band_that_cannot_be_read_does_not_strand_the_others(world: World) -> None:
    world.state.faults.spoiled.add((QUEUE, 3))
    staff = await world.hire(concurrency=4)

    ids = [await world.submit(priority=priority) for priority in (9, 5, 0)]
    await world.advance(20)

    assert [S.SUCCEEDED] * 3 == [await world.status(task_id) for task_id in ids]
    assert staff.notes.of("sweep_incomplete")


async def test_nothing_starts_while_the_queue_is_paused(world: World) -> None:
    await world.hire()
    await world.queues.pause(QUEUE, by=OPERATOR)
    task_id = await world.submit()
    await world.advance(5)
    assert S.QUEUED == await world.status(task_id)

    await world.queues.resume(QUEUE, by=OPERATOR)
    await world.settle()

    assert S.SUCCEEDED == await world.status(task_id)
    assert 5 == world.clock.monotonic()


async def test_without_the_signal_a_resume_is_seen_within_half_a_second(world: World) -> None:
    await world.hire()
    await world.queues.pause(QUEUE, by=OPERATOR)
    task_id = await world.submit()
    await world.advance(5)
    world.link.lose("tell_queue", Loss.BEFORE)

    await world.queues.resume(QUEUE, by=OPERATOR)
    await world.advance(0.51)

    assert S.SUCCEEDED == await world.status(task_id)


async def test_an_entry_read_before_the_pause_is_handed_back_uncounted(world: World) -> None:
    staff = await world.hire()
    staff.link.stall("commit")
    task_id = await world.submit()
    await world.queues.pause(QUEUE, by=OPERATOR)

    staff.link.go_on()
    await world.advance(2)
    assert (S.QUEUED, 0) == ((await world.task(task_id)).status, (await world.task(task_id)).attempt)
    await world.queues.resume(QUEUE, by=OPERATOR)
    await world.settle()

    assert (S.SUCCEEDED, 1) == ((await world.task(task_id)).status, (await world.task(task_id)).attempt)


async def test_what_runs_goes_on_while_the_queue_is_paused(world: World) -> None:
    await world.hire()
    task_id = await world.submit("hold")
    await world.queues.pause(QUEUE, by=OPERATOR)

    handlers.let_all_go()
    await world.settle()

    assert S.SUCCEEDED == await world.status(task_id)
