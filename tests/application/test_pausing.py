"""In a paused queue nothing starts, and what runs goes on."""

from dtq.domain.status import TaskStatus
from tests.application import handlers
from tests.application.link import Loss
from tests.application.world import EXPIRING, World
from tests.factories import OPERATOR, QUEUE

S = TaskStatus


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
    task_id = await world.submit(**EXPIRING)
    await world.queues.pause(QUEUE, by=OPERATOR)

    staff.link.go_on()
    await world.advance(2)
    assert (S.QUEUED, 0) == ((await world.task(task_id)).status, (await world.task(task_id)).attempt)
    await world.queues.resume(QUEUE, by=OPERATOR)
    await world.settle()

    assert (S.SUCCEEDED, 1) == ((await world.task(task_id)).status, (await world.task(task_id)).attempt)


async def test_what_was_handed_back_because_of_the_pause_comes_before_fresh_work_of_lower_bands(world: World) -> None:
    staff = await world.hire()
    staff.link.stall("commit")
    task_id = await world.submit(**EXPIRING)
    await world.queues.pause(QUEUE, by=OPERATOR)
    staff.link.go_on()
    await world.advance(3)
    fresh = await world.submit(priority=0)
    world.link.lose("tell_queue", Loss.BEFORE)

    await world.queues.resume(QUEUE, by=OPERATOR)
    await world.advance(0.51)

    assert [task_id, fresh] == [context.task_id for context in handlers.runs]


async def test_what_runs_goes_on_while_the_queue_is_paused(world: World) -> None:
    await world.hire()
    task_id = await world.submit("hold")
    await world.queues.pause(QUEUE, by=OPERATOR)

    handlers.let_all_go()
    await world.settle()

    assert S.SUCCEEDED == await world.status(task_id)
