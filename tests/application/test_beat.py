"""The pulse of a worker: leases are kept as long as they may be, and a hung main loop is not waited for."""

import asyncio
import threading
from datetime import timedelta

import pytest

from dtq.adapters.memory import ManualClock, State, backend_of, connect
from dtq.application.beat_runner import ThreadBeat
from dtq.application.handover import Condition, Handover, Hold
from dtq.application.loops.beat import Beat
from dtq.application.settings import ExitCode, WorkerSettings
from dtq.domain.workers import WorkerStatus
from dtq.ports.backend import Backend, BackendOptions
from dtq.ports.broker import HeldLease, LeaseReport
from tests.application import handlers
from tests.application.link import Link, Loss, over
from tests.application.world import World
from tests.factories import NOW, WORKER, a_heartbeat, a_lease, a_receipt, a_task_id

SETTINGS = WorkerSettings(worker_id=WORKER, hostname="host", heartbeat_interval=timedelta(seconds=5))


class Pulse:
    """A beat over an empty broker, and what it told."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.link = Link()
        self.backend = over(self.link, backend_of(State(self.clock, options=BackendOptions())))
        self.reports: list[LeaseReport] = []
        self.troubles: list[tuple[str, str]] = []
        self.aborted: list[ExitCode] = []
        self.told_replaced = 0
        self.condition = Condition()
        self.handover = Handover(
            look=lambda: self.condition,
            on_reports=self.reports.extend,
            on_trouble=lambda what, error: self.troubles.append((what, type(error).__name__)),
            on_replaced=self._on_replaced,
        )
        self.beat = Beat(
            self.handover, settings=SETTINGS, heartbeat=a_heartbeat(worker_id=WORKER), abort=self.aborted.append
        )
        self.life = asyncio.ensure_future(self.beat.run(self.backend))

    def _on_replaced(self) -> None:
        self.told_replaced += 1

    def hold(self, *, until: float) -> None:
        lease = HeldLease(task_id=a_task_id(), receipt=a_receipt(), lease=a_lease())
        self.condition = Condition(holds=(Hold(lease=lease, until=until),), active=1)

    async def live(self, seconds: int, *, ticking: bool) -> None:
        for _ in range(seconds):
            self.handover.ticks += ticking
            await self.clock.advance(timedelta(seconds=1))


async def test_leases_are_extended_every_second_and_reported() -> None:
    pulse = Pulse()
    pulse.hold(until=100)

    await pulse.live(5, ticking=True)

    assert 1 + 5 == len(pulse.reports)
    assert not pulse.reports[0].kept


async def test_a_lease_is_kept_past_the_deadline_while_the_main_loop_lives() -> None:
    pulse = Pulse()
    pulse.hold(until=3.5)

    await pulse.live(10, ticking=True)

    assert 1 + 10 == len(pulse.reports)
    assert [] == pulse.aborted


async def test_a_main_loop_that_hangs_past_the_deadline_ends_the_process_and_gives_the_leases_up() -> None:
    pulse = Pulse()
    pulse.hold(until=10)

    await pulse.live(9, ticking=False)
    assert [] == pulse.aborted
    await pulse.live(3, ticking=False)

    assert ExitCode.HUNG in pulse.aborted
    assert pulse.link.calls["release"] > 0


async def test_a_hung_main_loop_that_was_replaced_is_not_waited_for() -> None:
    pulse = Pulse()
    other = a_heartbeat(worker_id=WORKER, started_at=NOW + timedelta(seconds=1))
    assert await pulse.backend.workers.announce(other, expires_in=timedelta(minutes=5))
    pulse.hold(until=100)

    await pulse.live(2, ticking=False)
    assert 1 == pulse.told_replaced
    assert [] == pulse.aborted
    extended = pulse.link.calls["extend"]
    await pulse.live(2, ticking=False)

    assert ExitCode.HUNG in pulse.aborted
    assert extended == pulse.link.calls["extend"]
    assert 0 == pulse.link.calls["release"]
    assert other == await pulse.backend.workers.get(WORKER)


async def test_a_main_loop_that_hangs_within_its_tasks_deadlines_keeps_its_leases() -> None:
    pulse = Pulse()
    pulse.hold(until=100)

    await pulse.live(60, ticking=False)

    assert [] == pulse.aborted
    assert 1 + 60 == len(pulse.reports)


async def test_a_neighbor_whose_deadline_passes_meanwhile_keeps_its_lease_too() -> None:
    pulse = Pulse()
    pulse.hold(until=100)
    first = pulse.condition.holds
    pulse.hold(until=3)
    pulse.condition = Condition(holds=first + pulse.condition.holds, active=2)

    await pulse.live(60, ticking=False)

    assert [] == pulse.aborted
    assert 2 * (1 + 60) == len(pulse.reports)


async def test_a_process_that_was_stopped_as_a_whole_does_not_look_hung() -> None:
    pulse = Pulse()
    pulse.hold(until=10)
    await pulse.live(2, ticking=True)

    pulse.clock._elapsed += timedelta(seconds=60)  # noqa: SLF001 - time passes while nothing at all runs
    await pulse.clock.advance(timedelta(seconds=0.1))

    assert [] == pulse.aborted


async def test_a_hang_ends_the_process_even_without_a_broker() -> None:
    pulse = Pulse()
    pulse.hold(until=2)
    pulse.link.is_down = True

    await pulse.live(8, ticking=False)

    assert ExitCode.HUNG in pulse.aborted
    assert ("release_failed", "BrokerUnavailable") in pulse.troubles


async def test_trouble_is_told_and_the_beat_goes_on() -> None:
    pulse = Pulse()
    pulse.hold(until=100)
    pulse.link.lose("extend", Loss.BEFORE, times=2)

    await pulse.live(6, ticking=True)

    assert [("beat_failed", "BrokerUnavailable")] * 2 == pulse.troubles
    assert 1 + 6 - 2 == len(pulse.reports)


async def test_a_fault_in_the_beat_itself_does_not_end_it() -> None:
    pulse = Pulse()
    pulse.hold(until=100)
    broken = pulse.handover.on_reports

    def break_once(reports: object) -> None:
        pulse.handover.on_reports = broken
        raise ZeroDivisionError(reports)

    pulse.handover.on_reports = break_once
    await pulse.live(3, ticking=True)

    assert [("beat_failed", "ZeroDivisionError")] == pulse.troubles
    assert 1 + 3 - 1 == len(pulse.reports)


async def test_the_worker_is_announced_every_heartbeat_with_its_condition() -> None:
    pulse = Pulse()
    await pulse.live(1, ticking=True)
    pulse.condition = Condition(active=2, processed=7, failed=1, retried=3)

    await pulse.live(5, ticking=True)

    heartbeat = await pulse.backend.workers.get(WORKER)
    assert heartbeat is not None
    assert (WorkerStatus.BUSY, 2, 7, 1, 3) == (
        heartbeat.status,
        heartbeat.active_tasks,
        heartbeat.tasks_processed,
        heartbeat.tasks_failed,
        heartbeat.tasks_retried,
    )
    assert 2 == pulse.link.calls["announce"]


async def test_a_drain_is_announced_at_the_next_beat() -> None:
    pulse = Pulse()
    await pulse.live(1, ticking=True)
    pulse.condition = Condition(draining=True)

    await pulse.live(1, ticking=True)

    heartbeat = await pulse.backend.workers.get(WORKER)
    assert heartbeat is not None
    assert WorkerStatus.DRAINING == heartbeat.status


async def test_a_worker_counts_what_it_did(world: World) -> None:
    staff = await world.hire(concurrency=2)
    await world.submit()
    await world.submit("fail", payload='{"error": "permanent"}')
    await world.submit("fail", payload='{"error": "retryable"}', max_attempts=2)
    await world.submit("hold")

    await world.advance(10)

    heartbeat = await world.backend.workers.get(staff.settings.worker_id)
    assert heartbeat is not None
    assert (4, 2, 1, 1) == (
        heartbeat.tasks_processed,
        heartbeat.tasks_failed,
        heartbeat.tasks_retried,
        heartbeat.active_tasks,
    )
    assert tuple(sorted(handler.name for handler in handlers.REGISTRY)) == heartbeat.task_types


class Sibling:
    """Makes a backend for the beat's thread, and tells where it was made and closed."""

    def __init__(self) -> None:
        self.threads: list[int] = []
        self.backend: Backend | None = None

    def __call__(self) -> Backend:
        self.threads.append(threading.get_ident())
        self.backend = connect("memory://", options=BackendOptions())
        return self.backend


async def test_a_thread_runs_the_beat_beside_a_main_loop_that_is_blocked() -> None:
    sibling, beaten = Sibling(), threading.Event()

    async def beat(backend: Backend) -> None:
        assert backend is sibling.backend
        beaten.set()
        await asyncio.Event().wait()

    runner = ThreadBeat(sibling)
    runner.start(beat)
    assert beaten.wait(timeout=10)  # blocks the main loop, which the beat does not need
    await runner.stop()
    await runner.stop()

    assert threading.get_ident() not in sibling.threads
    assert not [thread for thread in threading.enumerate() if thread.name == "dtq-beat"]


async def test_a_thread_that_is_stopped_at_once_ends_too() -> None:
    async def beat(_: Backend) -> None:
        await asyncio.Event().wait()

    runner = ThreadBeat(Sibling())
    runner.start(beat)

    await runner.stop()

    assert not [thread for thread in threading.enumerate() if thread.name == "dtq-beat"]


async def test_a_runner_that_was_never_started_stops() -> None:
    await ThreadBeat(Sibling()).stop()


@pytest.mark.parametrize("heartbeat", [0.5, 1, 5])
def test_the_beat_is_no_slower_than_the_heartbeat(heartbeat: float) -> None:
    settings = WorkerSettings(worker_id=WORKER, hostname="host", heartbeat_interval=timedelta(seconds=heartbeat))

    assert timedelta(seconds=min(heartbeat, 1)) == settings.beat_interval
    assert timedelta(seconds=1) + settings.beat_interval == settings.grace
