"""Ends that a fetch takes along: what waits for whom, and what becomes of it where that fetch fails."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from dtq.adapters.memory.clock import settle
from dtq.application.group_commit import MAX_BATCH
from dtq.application.handover import Hold
from dtq.application.in_flight import InFlight, Job
from dtq.domain.change import Change
from dtq.domain.errors import BrokerUnavailable
from dtq.domain.status import TaskStatus
from dtq.domain.task import Task
from dtq.ports.answers import CommitAnswer, Conflict
from dtq.ports.broker import Fetch, HeldLease
from dtq.ports.workers import Signal, SignalKind
from tests.application import handlers
from tests.application.test_second_looks import calls_of
from tests.application.test_settling_together import Ward, applied, spoiled_by
from tests.application.world import World
from tests.factories import QUEUE, a_fault, a_task

S = TaskStatus
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Carrier:
    """A fetch that takes ends along, and answers them as a test has it."""

    def __init__(self, answer: Callable[[Change], CommitAnswer] = applied) -> None:
        self.taken: list[Sequence[Change]] = []
        self._answer = answer

    async def fetch(self, changes: Sequence[Change]) -> Fetch:
        self.taken.append(changes)
        return Fetch(deliveries=(), now=NOW, answers=[self._answer(change) for change in changes])


async def never(_: Sequence[Change]) -> Fetch:
    """A fetch that is never answered."""
    await asyncio.Event().wait()
    raise AssertionError


def a_waiting_ward() -> tuple[Ward, list[None]]:
    """A ward whose ends wait to be taken along, and how often somebody was told of one."""
    ward, told = Ward(), list[None]()
    ward.settling.wait(lambda: told.append(None))
    return ward, told


async def test_what_ends_waits_for_whoever_comes_soon_and_tells_him() -> None:
    ward, told = a_waiting_ward()

    ended = ward.end_many(2)
    await settle()

    assert ([], [], 2) == (ward.broker.sizes, ward.over, len(told))
    assert [task.lease for task in ended] == ward.settling.leases


async def test_it_is_recorded_by_the_fetch_that_takes_it_along() -> None:
    ward, _ = a_waiting_ward()
    ended, carrier = ward.end_many(2), Carrier()

    fetched = await ward.settling.take_along(carrier.fetch, at_most=MAX_BATCH)

    assert ([2], [], ended) == ([len(taken) for taken in carrier.taken], ward.broker.sizes, ward.over)
    assert (2, 2, []) == (len(fetched.answers), ward.settling.tally.processed, ward.settling.leases)


async def test_it_is_recorded_on_its_own_where_nobody_comes_after_all() -> None:
    ward, told = a_waiting_ward()
    ended = ward.end_many(2)

    ward.settling.go()
    ended += ward.end_many(1)
    await settle()

    assert (ended, 2) == (ward.over, len(told))


@pytest.mark.parametrize(("at_most", "taken"), [(MAX_BATCH + 1, MAX_BATCH), (MAX_BATCH, MAX_BATCH), (2, 2)])
async def test_a_fetch_takes_as_many_along_as_it_may_and_a_hundred_at_most(at_most: int, taken: int) -> None:
    ward, _ = a_waiting_ward()
    ended, carrier = ward.end_many(taken + 1), Carrier()

    await ward.settling.take_along(carrier.fetch, at_most=at_most)

    assert ended[:taken] == ward.over
    assert [ended[taken].lease] == ward.settling.leases


async def test_what_has_moved_is_decided_again_and_sent_by_the_next_request() -> None:
    ward, told = a_waiting_ward()
    task = ward.end(a_task(status=S.RUNNING), a_fault())
    found = a_task(task_id=task.task_id, status=S.RUNNING, lease=task.lease, cancel_requested=True)

    await ward.settling.take_along(Carrier(lambda _: Conflict(found)).fetch, at_most=MAX_BATCH)
    assert ([task.lease], 2) == (ward.settling.leases, len(told))
    ward.settling.go()
    await settle()

    assert ([S.CANCELLED], [task]) == ([change.after.status for change in ward.broker.batches[0]], ward.over)


async def test_what_ends_while_a_fetch_is_under_way_is_taken_along_by_the_next() -> None:
    ward, told = a_waiting_ward()
    fetching = asyncio.create_task(ward.settling.take_along(never, at_most=MAX_BATCH))
    await settle()

    ended = ward.end_many(2)
    await settle()
    assert ([], 2) == (ward.over, len(told))
    await ward.settling.take_along(Carrier().fetch, at_most=MAX_BATCH)

    assert ended == ward.over
    fetching.cancel()


async def test_where_the_fetch_is_not_answered_it_is_recorded_later() -> None:
    ward, _ = a_waiting_ward()
    ended = ward.end_many(2)

    async def fail(_: Sequence[Change]) -> Fetch:
        raise BrokerUnavailable("down")

    with pytest.raises(BrokerUnavailable):
        await ward.settling.take_along(fail, at_most=MAX_BATCH)
    assert [] == ward.settling.leases
    ward.settling.go()
    await ward.clock.advance(timedelta(seconds=1))

    assert ended == ward.over


async def test_where_one_spoils_the_fetch_only_that_one_suffers() -> None:
    bad = a_task(status=S.RUNNING)
    spoil = spoiled_by(bad)
    ward = Ward(*[spoil] * 4)
    ward.settling.wait(lambda: None)
    first, _, last = ward.end(a_task(status=S.RUNNING)), ward.end(bad), ward.end(a_task(status=S.RUNNING))

    with pytest.raises(ValueError, match="encoded"):
        await ward.settling.take_along(Carrier(spoil).fetch, at_most=MAX_BATCH)
    ward.settling.go()
    await settle()

    assert [bad, first, last] == ward.over
    assert [first.task_id, last.task_id] == [change.after.task_id for change in ward.notes.changes]


async def test_where_the_fetch_is_stopped_it_is_recorded_on_its_own() -> None:
    ward, _ = a_waiting_ward()
    ended = ward.end_many(1)

    fetching = asyncio.create_task(ward.settling.take_along(never, at_most=MAX_BATCH))
    await settle()
    fetching.cancel()
    ward.settling.go()
    await settle()

    assert fetching.cancelled()
    assert ended == ward.over


async def test_a_fetch_that_is_thrown_away_with_its_process_leaves_the_ends_alone() -> None:
    ward, told = a_waiting_ward()
    ward.end_many(1)

    fetching = ward.settling.take_along(never, at_most=MAX_BATCH)
    fetching.send(None)
    fetching.close()

    assert (1, []) == (len(told), ward.settling.leases)


async def test_what_was_let_go_of_while_it_was_taken_along_is_told_of_to_nobody() -> None:
    ward, told = a_waiting_ward()
    ward.end_many(1)

    async def slowly(changes: Sequence[Change]) -> Fetch:
        ward.settling.drop()
        return await Carrier().fetch(changes)

    await ward.settling.take_along(slowly, at_most=MAX_BATCH)
    assert ([], [], 1) == (ward.over, ward.notes.changes, len(told))


async def running_task(world: World) -> Task:
    task = await world.task(await world.submit("hold"))
    await world.settle()
    return task


async def test_a_loop_that_cannot_fetch_keeps_no_end_from_being_recorded(world: World) -> None:
    staff = await world.hire(concurrency=2)
    task = await running_task(world)
    staff.link.refuse("fetch", times=100)
    await world.backend.signals.tell_queue(QUEUE, Signal(kind=SignalKind.WORK))
    await world.settle()

    handlers.let_all_go()
    await world.settle()

    assert S.SUCCEEDED == await world.status(task.task_id)


async def test_a_worker_without_an_empty_slot_records_ends_with_its_fetches(world: World) -> None:
    staff = await world.hire(concurrency=1)
    tasks = [await running_task(world), await running_task(world)]
    staff.refuse_records_on_their_own()

    handlers.let_all_go()
    await world.settle()

    assert [S.SUCCEEDED] * 2 == [await world.status(task.task_id) for task in tasks]


async def test_a_fetch_that_had_no_room_does_not_take_the_queue_for_empty(world: World) -> None:
    staff = await world.hire(concurrency=1)
    task = await running_task(world)
    for _ in range(2):
        await world.submit("hold", payload='{"gate": "another"}')
    await world.backend.signals.tell_queue(QUEUE, Signal(kind=SignalKind.WORK))
    await world.settle()
    world.rewrite(await world.task(task.task_id))
    calls = calls_of(staff)

    handlers.let_all_go()
    await world.settle()

    assert S.SUCCEEDED == await world.status(task.task_id)
    assert "wait" not in calls


async def test_a_worker_that_is_to_stop_records_the_ends_of_what_it_runs(world: World) -> None:
    staff = await world.hire(concurrency=1)
    task = await running_task(world)
    staff.stop()
    await world.settle()

    handlers.let_all_go()
    await world.settle()

    assert S.SUCCEEDED == await world.status(task.task_id)


async def test_a_worker_takes_no_more_for_the_ends_that_it_records_than_these_leave_room_for(world: World) -> None:
    staff = await world.hire(concurrency=1)
    await world.submit("hold", payload='{"gate": "first"}')
    for _ in range(3):
        await world.submit("hold")

    handlers.gate("first").open()
    await world.settle()

    assert (2, 1) == (len(handlers.runs), staff.active)
    assert 1 == len(await world.backend.broker.owned(QUEUE, worker=staff.settings.worker_id))


async def test_a_worker_that_may_take_no_work_records_the_ends_of_what_it_runs(world: World) -> None:
    staff = await world.hire(concurrency=1)
    task_id = await world.submit("hold", timeout_ms=600_000)
    staff.link.refuse("announce", times=1000)
    await world.advance(60)
    assert "poll" in [note["loop"] for note in staff.notes.of("loop_failed")]

    handlers.let_all_go()
    await world.settle()

    assert S.SUCCEEDED == await world.status(task_id)


def test_the_slot_of_a_handler_that_goes_on_is_no_room_once_its_end_is_recorded() -> None:
    slots = InFlight(capacity=2, on_change=lambda: None, on_stuck=lambda: None)
    over, stuck = (a_job() for _ in range(2))
    for job in (over, stuck):
        slots.add(job)
    slots.end(over)

    assert (0, 1) == (slots.free, slots.free_without([over.lease, stuck.lease]))


def a_job() -> Job:
    task = a_task(status=S.RUNNING)
    assert task.lease is not None
    assert task.receipt is not None
    lease = HeldLease(task_id=task.task_id, receipt=task.receipt, lease=task.lease)
    return Job(task, hold=Hold(lease=lease, until=0.0))
