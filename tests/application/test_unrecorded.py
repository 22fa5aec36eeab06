"""What has ended and is being recorded keeps its slot, and is kept from everybody else."""

from datetime import timedelta

from msgspec.structs import replace

from dtq.application.settings import ExitCode
from dtq.domain.status import TaskStatus
from dtq.domain.task import TaskId
from tests.application import handlers
from tests.application.world import World
from tests.factories import QUEUE, a_lease

S = TaskStatus


async def submitted(world: World, *, count: int) -> list[TaskId]:
    found = await world.tasks.submit_many([{"task_type": "note", "payload": "{}"}] * count)
    await world.settle()
    return [one.task_id for one in found if not isinstance(one, Exception)]


async def test_a_worker_that_cannot_record_owns_no_more_than_its_concurrency(world: World) -> None:
    staff = await world.hire(concurrency=2)
    taken = staff.hold_records()

    ids = await submitted(world, count=10)
    assert (2, 2, 0) == (len(handlers.runs), staff.active, staff.free)
    assert 2 == len(await world.backend.broker.owned(QUEUE, worker=staff.settings.worker_id))
    taken.set()
    await world.settle()

    assert {S.SUCCEEDED} == {await world.status(one) for one in ids}
    assert (10, 0, 2) == (len(handlers.runs), staff.active, staff.free)


async def test_no_peer_takes_what_waits_to_be_recorded(world: World) -> None:
    await world.age_server()
    staff = await world.hire(concurrency=2)
    taken = staff.hold_records()
    ids = await submitted(world, count=2)

    await world.hire(concurrency=4)
    await world.advance(100)
    taken.set()
    await world.settle()

    assert [(S.SUCCEEDED, 1)] * 2 == [((await world.task(one)).status, (await world.task(one)).attempt) for one in ids]
    assert 2 == len(handlers.runs)


async def test_a_heartbeat_counts_what_waits_to_be_recorded(world: World) -> None:
    staff = await world.hire(concurrency=2)
    staff.hold_records()

    await submitted(world, count=4)
    await world.advance(6)

    heartbeat = await world.backend.workers.get(staff.settings.worker_id)
    assert heartbeat is not None
    assert 2 == heartbeat.active_tasks


async def test_no_lease_is_called_lost_while_its_outcome_is_being_recorded(world: World) -> None:
    staff = await world.hire()
    staff.hold_records()
    (task_id,) = await submitted(world, count=1)

    # as by a commit whose answer is on its way
    world.rewrite(replace(await world.task(task_id), lease=a_lease()))
    await world.advance(3)

    assert ([], 1) == (staff.notes.of("lease_lost"), staff.active)


async def test_a_drain_waits_for_what_is_being_recorded(world: World) -> None:
    staff = await world.hire(concurrency=2)
    taken = staff.hold_records()
    ids = await submitted(world, count=2)

    staff.stop()
    await world.advance(5)
    assert not staff.life.done()
    taken.set()
    await world.settle()

    assert ExitCode.DRAINED == staff.life.result()
    assert {S.SUCCEEDED} == {await world.status(one) for one in ids}


async def test_what_cannot_be_recorded_until_the_limit_of_a_drain_is_handed_back(world: World) -> None:
    staff = await world.hire(concurrency=2, drain_timeout=timedelta(seconds=10))
    staff.hold_records()
    ids = await submitted(world, count=2)

    staff.stop()
    await world.advance(11)
    assert ExitCode.WORK_LEFT == staff.life.result()
    peer = await world.hire(concurrency=4)

    ended = [await world.task(one) for one in ids]
    assert [(S.SUCCEEDED, 2, peer.settings.worker_id)] * 2 == [
        (one.status, one.attempt, one.worker_id) for one in ended
    ]
