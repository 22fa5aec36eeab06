"""Deadlines, and handlers that do not care."""

from dtq.application.settings import ExitCode
from dtq.domain.status import TaskStatus
from tests.application import handlers
from tests.application.world import Staff, World

S = TaskStatus


def is_idle(staff: Staff) -> bool:
    return staff.free == staff.settings.concurrency


async def failure_of(world: World, task_id: str) -> str | None:
    task = (await world.tasks.get(task_id)).task
    return task.failure.error_message if task.failure is not None else None


async def test_an_async_handler_is_stopped_at_its_deadline_and_retried(world: World) -> None:
    await world.hire()
    task_id = await world.submit("hold", timeout_ms=2_000)

    await world.advance(1.99)
    assert S.RUNNING == await world.status(task_id)
    await world.advance(0.02)

    assert S.RETRYING == await world.status(task_id)
    assert "no result within 2 s" == await failure_of(world, task_id)


async def test_a_lease_may_be_held_until_the_deadline_and_the_grace(world: World) -> None:
    staff = await world.hire()

    await world.submit("hold", timeout_ms=60_000)

    (hold,) = staff.worker._crew.in_flight.holds  # noqa: SLF001 - it shows only where a main loop hangs for good
    assert 60 + staff.settings.grace.total_seconds() == hold.until - world.clock.monotonic()


async def test_the_last_attempt_that_times_out_is_given_up(world: World) -> None:
    await world.hire()
    task_id = await world.submit("hold", timeout_ms=1_000, max_attempts=1)

    await world.advance(1.1)

    assert S.DEAD_LETTERED == await world.status(task_id)


async def test_a_handler_that_swallows_its_cancellation_is_given_up_after_a_second(world: World) -> None:
    staff = await world.hire()
    task_id = await world.submit("stubborn", timeout_ms=2_000, max_attempts=1)

    await world.advance(2.9)
    assert S.RUNNING == await world.status(task_id)
    await world.advance(0.2)

    assert S.DEAD_LETTERED == await world.status(task_id)
    assert "no result within 2 s" == await failure_of(world, task_id)
    assert not is_idle(staff)


async def test_a_value_after_the_deadline_does_not_count(world: World) -> None:
    await world.hire()
    task_id = await world.submit("stubborn", timeout_ms=2_000, max_attempts=1)
    await world.advance(2.5)

    handlers.gate().open()
    await world.settle()

    assert S.DEAD_LETTERED == await world.status(task_id)
    assert "no result within 2 s" == await failure_of(world, task_id)


async def test_a_value_of_a_handler_that_blocked_the_loop_past_its_deadline_does_not_count(world: World) -> None:
    await world.hire()
    handlers.hooks["hook"] = lambda: world.let_pass(3)

    task_id = await world.submit("block", payload='{"hook": "hook"}', timeout_ms=2_000, max_attempts=1)

    assert S.DEAD_LETTERED == await world.status(task_id)
    assert "no result within 2 s" == await failure_of(world, task_id)


async def test_a_handler_that_blocks_the_loop_within_its_deadline_succeeds(world: World) -> None:
    await world.hire()
    handlers.hooks["hook"] = lambda: world.let_pass(1)

    task_id = await world.submit("block", payload='{"hook": "hook"}', timeout_ms=2_000, max_attempts=1)

    assert S.SUCCEEDED == await world.status(task_id)


async def test_the_slot_of_a_stubborn_handler_is_free_once_it_ends(world: World) -> None:
    staff = await world.hire(concurrency=2)
    await world.submit("stubborn", timeout_ms=1_000, max_attempts=1)
    await world.advance(2.5)
    assert not is_idle(staff)

    handlers.gate().open()
    await world.settle()

    assert is_idle(staff)


async def test_a_thread_keeps_its_slot_after_its_attempt_is_recorded(world: World) -> None:
    staff = await world.hire(concurrency=2)
    task_id = await world.submit("thread", timeout_ms=1_000, max_attempts=1)
    await world.until(lambda: bool(handlers.runs))

    await world.advance(1.1)
    assert S.DEAD_LETTERED == await world.status(task_id)
    await world.submit("hold")
    await world.submit("hold")
    assert 2 == len(handlers.runs)

    handlers.gate().open()
    await world.until(lambda: is_idle(staff))
    assert 3 == len(handlers.runs)


async def test_a_thread_that_ends_in_time_succeeds(world: World) -> None:
    staff = await world.hire()
    task_id = await world.submit("thread", timeout_ms=1_000)
    await world.until(lambda: bool(handlers.runs))

    handlers.gate().open()
    await world.until(lambda: is_idle(staff))

    assert S.SUCCEEDED == await world.status(task_id)


async def test_a_worker_whose_slots_are_all_stuck_drains_and_asks_to_be_started_again(world: World) -> None:
    staff = await world.hire(concurrency=2)
    for _ in range(2):
        await world.submit("thread", timeout_ms=1_000, max_attempts=1)
    await world.until(lambda: len(handlers.runs) == 2)

    await world.advance(4)

    assert staff.life.done()
    assert ExitCode.WORK_LEFT == staff.life.result()
    assert [{"concurrency": 2}] == staff.notes.of("every_slot_is_stuck")


async def test_threads_that_each_overrun_a_little_do_not_end_their_worker(world: World) -> None:
    staff = await world.hire(concurrency=1)
    for gate, timeout_ms in (("first", 1_000), ("second", 200)):
        payload = f'{{"gate": "{gate}"}}'
        await world.submit("thread", payload=payload, timeout_ms=timeout_ms, max_attempts=1)
    await world.until(lambda: len(handlers.runs) == 1)
    await world.advance(1.5)
    handlers.gate("first").open()
    await world.until(lambda: len(handlers.runs) == 2)

    # by now the one has been looked at again, and the other has overrun
    await world.advance(0.6)
    handlers.gate("second").open()
    await world.until(lambda: is_idle(staff))
    await world.advance(5)

    assert not staff.life.done()
    assert [] == staff.notes.of("every_slot_is_stuck")


async def test_a_thread_that_overruns_a_little_does_not_end_its_worker(world: World) -> None:
    staff = await world.hire(concurrency=1)
    await world.submit("thread", timeout_ms=1_000, max_attempts=1)
    await world.until(lambda: bool(handlers.runs))
    await world.advance(1.5)

    handlers.gate().open()
    await world.until(lambda: is_idle(staff))
    await world.advance(5)

    assert not staff.life.done()
    assert S.SUCCEEDED == await world.status(await world.submit())
