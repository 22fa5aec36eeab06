"""What a worker looks at twice before it acts: its own entries, and its leases after a failure."""

from collections.abc import Awaitable, Callable

from dtq.domain.status import TaskStatus
from dtq.ports.workers import Signal, SignalKind
from tests.application import handlers
from tests.application.link import Loss
from tests.application.world import Staff, World
from tests.factories import QUEUE

S = TaskStatus


def calls_of(staff: Staff) -> list[str]:
    """The calls that a worker makes of its broker, from now on."""
    calls: list[str] = []
    carry = staff.link.carry

    async def carry_and_note(method: str, call: Callable[[], Awaitable[object]], **named: bool) -> object:
        calls.append(method)
        return await carry(method, call, **named)

    vars(staff.link)["carry"] = carry_and_note
    return calls


async def test_a_worker_that_reaps_the_entry_of_its_own_running_task_lets_it_run_on(world: World) -> None:
    await world.age_server()
    staff = await world.hire(concurrency=2)
    task_id = await world.submit("hold")
    owned = await world.backend.broker.owned(QUEUE, worker=staff.settings.worker_id)
    await world.backend.broker.release(owned, worker=staff.settings.worker_id)

    await world.backend.signals.tell_queue(QUEUE, Signal(kind=SignalKind.WORK))
    await world.settle()
    handlers.let_all_go()
    await world.settle()

    assert (S.SUCCEEDED, 1) == ((await world.task(task_id)).status, (await world.task(task_id)).attempt)
    assert 1 == len(handlers.runs)


async def test_after_a_failure_leases_are_extended_before_anything_is_taken_or_given(world: World) -> None:
    staff = await world.hire(concurrency=2)
    await world.submit("hold")
    calls = calls_of(staff)
    staff.link.lose("fetch", Loss.BEFORE)
    await world.backend.signals.tell_queue(QUEUE, Signal(kind=SignalKind.WORK))
    await world.settle()
    assert "fetch" in calls
    calls.clear()

    await world.advance(0.5)

    of_work = [call for call in calls if call in {"extend", "owned", "release", "fetch", "commit"}]
    assert ["extend", "owned", "fetch"] == of_work[:3]


async def test_a_leader_that_cannot_renew_its_term_sweeps_no_more_once_that_is_over(world: World) -> None:
    staff = await world.hire()
    await world.advance(1)
    assert staff.link.calls["return_stale"]
    staff.link.stall("acquire")
    await world.advance(11)
    swept = staff.link.calls["return_stale"]

    await world.advance(30)

    assert swept == staff.link.calls["return_stale"]
    staff.link.go_on()
