"""What a crash leaves between two steps of a task, what a worker says of itself, and what peers do not do in step."""

from datetime import timedelta

import pytest

from dtq.adapters.memory import ManualClock
from dtq.application.backoff import Backoff
from dtq.application.reaping import Reaping
from dtq.application.settings import ExitCode
from dtq.domain.status import TaskStatus
from dtq.domain.workers import WorkerStatus
from tests.application import handlers
from tests.application.stage import MiddleChance
from tests.application.world import EXPIRING, Staff, World

S = TaskStatus
VISIBILITY = timedelta(seconds=6)


async def test_a_crash_between_reading_and_starting_costs_no_attempt(world: World) -> None:
    await world.age_server()
    first = await world.hire(visibility_timeout=VISIBILITY)
    first.link.stall("commit")
    task_id = await world.submit(**EXPIRING)
    first.kill()
    assert (S.QUEUED, 1) == (await world.status(task_id), await world.pending())

    await world.hire(visibility_timeout=VISIBILITY)
    await world.advance(10)

    assert (S.SUCCEEDED, 1) == ((await world.task(task_id)).status, (await world.task(task_id)).attempt)
    assert 1 == len(handlers.runs)


async def test_a_crash_between_the_handler_and_the_record_makes_it_run_again(world: World) -> None:
    await world.age_server()
    first = await world.hire(visibility_timeout=VISIBILITY)
    task_id = await world.submit("hold", idempotency_key="key-1")
    first.link.stall("commit")
    handlers.let_all_go()
    await world.settle()
    first.kill()
    assert S.RUNNING == await world.status(task_id)

    await world.hire(visibility_timeout=VISIBILITY)
    await world.advance(10)

    assert (S.SUCCEEDED, 2) == ((await world.task(task_id)).status, (await world.task(task_id)).attempt)
    assert [(task_id, "key-1", 1), (task_id, "key-1", 2)] == [
        (context.task_id, context.idempotency_key, context.attempt) for context in handlers.runs
    ]


async def test_a_crash_after_the_record_changes_nothing(world: World) -> None:
    await world.age_server()
    first = await world.hire(visibility_timeout=VISIBILITY)
    task_id = await world.submit()
    ended = await world.task(task_id)
    first.kill()

    await world.hire(visibility_timeout=VISIBILITY)
    await world.advance(10)

    assert S.SUCCEEDED == ended.status
    assert (ended, 1) == (await world.task(task_id), len(handlers.runs))


async def said_by(world: World, staff: Staff) -> tuple[WorkerStatus, int, int] | None:
    heartbeat = await world.backend.workers.get(staff.settings.worker_id)
    return None if heartbeat is None else (heartbeat.status, heartbeat.active_tasks, heartbeat.tasks_processed)


async def test_a_worker_is_starting_ready_busy_draining_and_gone(world: World) -> None:
    staff = await world.hire_unconnected()

    def stall_the_second() -> None:
        if staff.link.calls["announce"] == 2:
            staff.link.stall("announce")

    staff.link.watch("announce", stall_the_second)
    staff.link.is_down = False
    await world.advance(6)
    assert (WorkerStatus.STARTING, 0, 0) == await said_by(world, staff)

    staff.link.go_on()
    await world.advance(6)
    assert (WorkerStatus.READY, 0, 0) == await said_by(world, staff)

    await world.submit("hold")
    await world.advance(6)
    assert (WorkerStatus.BUSY, 1, 0) == await said_by(world, staff)

    handlers.let_all_go()
    await world.advance(6)
    assert (WorkerStatus.READY, 0, 1) == await said_by(world, staff)

    await world.submit("hold", payload='{"gate": "second"}')
    staff.stop()
    await world.advance(6)
    assert (WorkerStatus.DRAINING, 1, 1) == await said_by(world, staff)

    handlers.let_all_go()
    await world.advance(1)
    assert await said_by(world, staff) is None
    assert staff.life.done()


async def test_a_sign_of_life_comes_every_heartbeat_and_lasts_for_three(world: World) -> None:
    staff = await world.hire(heartbeat_interval=timedelta(seconds=2))
    before = staff.link.calls["announce"]

    await world.advance(20)
    assert 9 <= staff.link.calls["announce"] - before <= 11
    staff.kill()
    await world.advance(5.9)
    assert await said_by(world, staff) is not None
    await world.advance(0.2)

    assert await said_by(world, staff) is None


class Extreme:
    """Chance that always falls on one side."""

    def __init__(self, *, is_low: bool) -> None:
        self._is_low = is_low

    def uniform(self, low: float, high: float) -> float:
        return low if self._is_low else high


def test_what_peers_do_after_a_common_fault_is_spread() -> None:
    early, late = (Backoff(Extreme(is_low=is_low)) for is_low in (True, False))

    for _ in range(8):
        assert early.pause() < late.pause()


def reaping_of(*, clock: ManualClock | None = None, is_low: bool = True, visibility: timedelta = VISIBILITY) -> Reaping:
    return Reaping(
        clock=clock or ManualClock(),
        chance=Extreme(is_low=is_low),
        visibility_timeout=visibility,
        heartbeat_interval=timedelta(seconds=1),
        beat_interval=timedelta(seconds=1),
    )


def test_the_turns_of_reaping_are_spread() -> None:
    both = [reaping_of(is_low=is_low) for is_low in (True, False)]
    for reaping in both:
        reaping.done(is_whole=True, has_found=False)

    assert [timedelta(seconds=1.05), timedelta(seconds=1.5)] == [reaping.due_in for reaping in both]


def test_a_reaping_that_was_asked_for_stays_due_until_a_sweep_has_got_to_the_lowest_band() -> None:
    reaping = reaping_of()

    reaping.ask()
    reaping.done(is_whole=False, has_found=False)
    assert reaping.is_due

    reaping.done(is_whole=True, has_found=False)
    assert not reaping.is_due


async def test_after_a_reply_that_lay_unread_for_long_the_clock_has_not_jumped() -> None:
    clock = ManualClock()
    reaping = reaping_of(clock=clock)
    assert not reaping.observe(clock.now(), asked_at=0.0)
    told = clock.now()
    await clock.advance(timedelta(seconds=5))
    assert not reaping.observe(told, asked_at=0.0)

    assert not reaping.observe(clock.now(), asked_at=clock.monotonic())


async def test_a_short_caution_does_not_end_a_long_one() -> None:
    clock = ManualClock()
    reaping = reaping_of(clock=clock)
    reaping.observe(clock.now(), asked_at=0.0)
    assert reaping.observe(clock.now() + timedelta(minutes=5), asked_at=0.0)

    reaping.outage()
    reaping.recovered()

    await clock.advance(timedelta(seconds=3))
    assert reaping.idle > VISIBILITY
    await clock.advance(VISIBILITY)
    assert reaping.idle == VISIBILITY


@pytest.mark.parametrize("visibility", [timedelta(seconds=1), timedelta(hours=24)])
def test_in_an_outage_nothing_is_taken_that_would_not_be_taken_without_one(visibility: timedelta) -> None:
    reaping = reaping_of(visibility=visibility)
    as_ever = reaping.idle

    reaping.outage()

    assert visibility == as_ever <= reaping.idle


@pytest.mark.parametrize(("is_low", "milliseconds"), [(True, 800), (False, 1200)])
async def test_a_retry_is_spread_to_both_sides_of_its_delay(
    world: World, monkeypatch: pytest.MonkeyPatch, *, is_low: bool, milliseconds: int
) -> None:
    monkeypatch.setattr(MiddleChance, "uniform", Extreme(is_low=is_low).uniform)
    await world.hire()

    task = await world.task(await world.submit("fail", payload='{"error": "retryable"}'))

    assert timedelta(milliseconds=milliseconds) == task.retry_delay


async def test_who_ends_at_once_hands_nothing_back_any_more(world: World) -> None:
    staff = await world.hire(drain_timeout=timedelta(seconds=1))
    await world.submit("hold")
    staff.stop()
    await world.advance(0.5)
    staff.link.stall("owned")
    await world.advance(1)
    assert not staff.life.done()

    staff.stop()
    await world.settle()
    staff.link.go_on()
    await world.settle()

    assert ExitCode.WORK_LEFT == staff.life.result()
    assert 0 == staff.link.calls["release"]
