"""What becomes of an entry that is not simply the next to run, and of a start that does not simply succeed."""

import pytest
from msgspec.structs import replace

from dtq.domain.change import Change, Requirement
from dtq.domain.entry import entry_fields
from dtq.domain.events import EventType
from dtq.domain.status import TaskStatus
from dtq.domain.task import Receipt, Task
from dtq.ports.answers import Already, Applied, Broken, CommitAnswer, Conflict, Refused
from tests.application import handlers
from tests.application.desk import Answer, Desk
from tests.application.world import EXPIRING, World
from tests.factories import OPERATOR, QUEUE, WORKER

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


@pytest.mark.parametrize("submitted", [{}, EXPIRING], ids=["by the fetch", "by a commit"])
async def test_tasks_that_are_started_together_are_told_of_and_run_each(
    world: World, submitted: dict[str, str]
) -> None:
    ids = [await world.submit(**submitted) for _ in range(3)]
    staff = await world.hire(concurrency=3)

    assert [[S.RUNNING, S.SUCCEEDED]] * 3 == [staff.notes.steps(task_id) for task_id in ids]


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
    task_id = await world.submit(**EXPIRING)
    world.state.records.remove(task_id)

    staff.link.go_on()
    await world.settle()

    assert S.SUCCEEDED == await world.status(task_id)


async def test_a_task_that_is_cancelled_between_sweep_and_start_is_not_run(world: World) -> None:
    staff = await world.hire()
    staff.link.stall("commit")
    task_id = await world.submit(**EXPIRING)
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


@pytest.fixture
def desk(world: World) -> Desk:
    return Desk(world)


def applied(change: Change) -> CommitAnswer:
    return Applied(change.after)


def broken(_: Change) -> CommitAnswer:
    return Broken("half-way")


def moved(change: Change) -> CommitAnswer:
    """Another version of the same task is stored; it comes without its payload."""
    assert change.before is not None
    return Conflict(replace(change.before, payload=None, version=change.after.version))


async def test_a_start_that_stopped_half_way_is_sent_again_as_it_was(desk: Desk) -> None:
    await desk.start(broken, applied)

    assert desk.sent[0] is desk.sent[1]
    assert [desk.sent[0].after] == [task for task, _ in desk.run]


async def test_a_start_that_always_stops_half_way_is_set_aside(desk: Desk) -> None:
    await desk.start(*[broken] * 5)

    assert (5, [], 0) == (len(desk.sent), desk.run, desk.handed_back)
    assert [desk.sent[0].after.receipt] == list(desk.set_aside.receipts)
    assert ["half-way"] == [note["reason"] for note in desk.world.notes.of("records_unreadable")]


async def test_a_start_that_was_made_before_runs_if_the_task_still_names_its_lease(desk: Desk) -> None:
    await desk.start(lambda change: Already(change.after))

    assert 1 == len(desk.run)


@pytest.mark.parametrize("answer", [lambda _: Already(None), lambda change: Already(change.before)])
async def test_a_start_that_was_made_long_ago_does_not_run_any_more(desk: Desk, answer: Answer) -> None:
    await desk.start(answer)

    assert [] == desk.run


async def test_a_start_that_finds_its_own_lease_runs(desk: Desk) -> None:
    await desk.start(lambda change: Conflict(change.after))

    ((task, lease),) = desk.run
    assert task.lease == lease.lease
    assert '{"n": 1}' == task.payload


async def test_a_conflict_is_decided_with_the_payload_of_the_entry(desk: Desk) -> None:
    await desk.start(moved, applied)

    assert ['{"n": 1}'] == [task.payload for task, _ in desk.run]
    assert desk.sent[0].after.version != desk.sent[1].after.version


async def test_a_task_that_never_stands_still_is_handed_back(desk: Desk) -> None:
    await desk.start(*[moved] * 5)

    assert (5, [], 1) == (len(desk.sent), desk.run, desk.handed_back)


async def test_a_refused_start_is_dropped_without_a_word_to_the_broker(desk: Desk) -> None:
    await desk.start(lambda change: Refused(requirement=Requirement.HELD, task=change.before))

    assert (1, [], 0) == (len(desk.sent), desk.run, desk.handed_back)
    assert 1 == len(await desk.world.backend.broker.owned(QUEUE, worker=WORKER))


async def test_a_start_in_a_paused_queue_is_handed_back(desk: Desk) -> None:
    await desk.start(lambda change: Refused(requirement=Requirement.UNPAUSED, task=change.before))

    assert (1, [], 1) == (len(desk.sent), desk.run, desk.handed_back)


async def test_a_start_that_stopped_half_way_and_then_moved_is_decided_anew(desk: Desk) -> None:
    await desk.start(broken, moved, applied)

    assert desk.sent[0] is desk.sent[1]
    assert [desk.sent[2].after] == [task for task, _ in desk.run]
    assert desk.sent[1].after.version != desk.sent[2].after.version
