"""Entries whose records cannot be read: they wait for their turn like everybody, stop nobody, and keep nobody busy."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from dtq.adapters.memory import ManualClock
from dtq.application.set_aside import SetAside
from dtq.domain.change import Change
from dtq.domain.errors import OF_ONE_REQUEST, BrokerUnavailable
from dtq.domain.status import TaskStatus
from dtq.domain.task import Receipt, TaskId
from dtq.ports.answers import Broken, CommitAnswer
from dtq.ports.broker import UnreadableEntry
from tests.application import handlers
from tests.application.stage import Notes
from tests.application.world import Staff, World
from tests.factories import OPERATOR, QUEUE, a_receipt

S = TaskStatus
VISIBILITY = 30
ROUNDS = 4


async def garbled_tasks(world: World, count: int, *, priority: int = 9) -> list[TaskId]:
    ids = [await world.submit(priority=priority) for _ in range(count)]
    world.state.faults.garbled.update(ids)
    return ids


def told(*staff: Staff) -> int:
    return sum(int(note["entries"]) for one in staff for note in one.notes.of("records_unreadable"))


async def test_as_many_as_the_worker_has_slots_block_no_lower_priority(world: World) -> None:
    await world.age_server()
    await garbled_tasks(world, 4)
    good = [await world.submit(priority=priority) for priority in range(10)]

    staff = await world.hire(concurrency=2)
    await world.advance(1)

    assert {S.SUCCEEDED} == {await world.status(task_id) for task_id in good}
    assert 2 == staff.free


async def test_each_comes_round_once_a_visibility_timeout_and_is_told_of_once_a_round(world: World) -> None:
    await world.age_server()
    await garbled_tasks(world, 3)
    staff = [await world.hire(concurrency=2) for _ in range(2)]
    await world.advance(1)
    assert 3 == told(*staff)
    fetches = sum(one.link.calls["fetch"] for one in staff)

    await world.advance(ROUNDS * VISIBILITY)

    assert 3 * ROUNDS - 3 <= told(*staff) - 3 <= 3 * ROUNDS
    # one sweep a turn of reaping, which comes four to six times a visibility timeout, and one after what was taken
    assert sum(one.link.calls["fetch"] for one in staff) - fetches < 2 * ROUNDS * (6 + 3 * 2)
    assert 0 == sum(one.link.calls["release"] for one in staff)


async def test_what_was_abandoned_below_it_does_not_wait_behind_fresh_work(world: World) -> None:
    await world.age_server()
    first = await world.hire(concurrency=2)
    spoiled, lost = [await world.submit("hold", priority=priority) for priority in (9, 5)]
    second = await world.hire()
    first.kill()
    second.link.stall("fetch", "wait")
    await world.advance(35)
    world.state.faults.garbled.add(spoiled)
    await world.submit("hold", priority=0)
    handlers.runs.clear()

    second.link.go_on()
    await world.settle()

    assert [lost] == [context.task_id for context in handlers.runs]


async def test_what_a_wake_brings_and_nobody_can_read_is_not_handed_back(world: World) -> None:
    await world.age_server()
    staff = await world.hire(concurrency=2)
    await world.advance(1)
    world.state.faults.garbled.update(TaskId(f"{number:032x}") for number in range(200))

    await world.submit()
    await world.advance(5)

    assert 1 == told(staff)
    assert (0, 1) == (staff.link.calls["release"], await world.pending())
    assert [] == handlers.runs


async def test_looking_at_what_is_owned_begins_no_round(world: World) -> None:
    await world.age_server()
    await garbled_tasks(world, 3)
    staff = await world.hire(concurrency=2)
    await world.advance(1)
    world.state.faults.spoiled.add((QUEUE, 4))
    fetches = staff.link.calls["fetch"]

    await world.advance(10)

    assert 3 == told(staff)
    assert 0 == staff.link.calls["release"]
    # twice a second because of the priority that cannot be read
    assert staff.link.calls["fetch"] - fetches <= 2 * 10 + 5


async def test_a_worker_that_drains_leaves_them_where_they_are(world: World) -> None:
    await world.age_server()
    await garbled_tasks(world, 2)
    staff = await world.hire(concurrency=2)
    await world.advance(1)

    staff.worker.request_stop()
    await world.advance(1)

    assert (0, 0) == (staff.life.result(), staff.link.calls["release"])


async def test_one_whose_record_is_mended_is_run_in_its_next_round(world: World) -> None:
    await world.age_server()
    (task_id,) = await garbled_tasks(world, 1)
    await world.hire()
    await world.advance(1)

    world.state.faults.garbled.clear()
    await world.advance(VISIBILITY * 1.3)

    assert S.SUCCEEDED == await world.status(task_id)


async def test_what_is_set_aside_is_kept_for_one_visibility_timeout() -> None:
    clock, notes = ManualClock(), Notes()
    set_aside = SetAside(clock=clock, observer=notes, queue=QUEUE, rest=timedelta(seconds=VISIBILITY))
    first, second = a_receipt(), a_receipt(priority=4)

    set_aside.add([UnreadableEntry(first, "garbled")])
    await clock.advance(timedelta(seconds=VISIBILITY - 1))
    set_aside.add([UnreadableEntry(second, "garbled")])
    set_aside.add([])

    assert {first, second} == set(set_aside.receipts)
    await clock.advance(timedelta(seconds=1))
    assert {second} == set(set_aside.receipts)
    assert 2 == len(notes.of("records_unreadable"))


async def test_a_delayed_task_that_nobody_can_read_holds_up_no_other(world: World) -> None:
    tasks = [await world.submit(delay_seconds=5) for _ in range(20)]
    world.state.faults.garbled.add(tasks[7])

    staff = await world.hire()
    await world.advance(6)

    assert {S.SUCCEEDED} == {await world.status(task_id) for task_id in tasks if task_id != tasks[7]}
    (note,) = staff.notes.of("records_unreadable")
    assert tasks[7] in note["reason"]
    assert [] == staff.notes.of("loop_failed")


async def test_a_delayed_task_that_nobody_can_read_is_told_of_once_a_minute_and_run_once_it_is_mended(
    world: World,
) -> None:
    task_id = await world.submit(delay_seconds=5)
    world.state.faults.garbled.add(task_id)
    staff = await world.hire()

    await world.advance(6 + 3 * 70)
    assert 3 <= told(staff) <= 4

    world.state.faults.garbled.clear()
    await world.advance(130)
    assert S.SUCCEEDED == await world.status(task_id)


class Stubborn:
    """A broker that stops every step of one task half-way."""

    def __init__(self, broker: Any, *, task_id: TaskId) -> None:
        self._broker = broker
        self._task_id = task_id

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    async def commit(self, changes: Sequence[Change]) -> Sequence[CommitAnswer]:
        return [
            Broken("it stops") if change.after.task_id == self._task_id else (await self._broker.commit([change]))[0]
            for change in changes
        ]


async def test_a_promotion_that_always_stops_half_way_holds_up_no_other(world: World) -> None:
    tasks = [await world.submit(delay_seconds=5) for _ in range(20)]
    world.backend = replace(world.backend, broker=Stubborn(world.backend.broker, task_id=tasks[7]))

    staff = await world.hire()
    await world.advance(6)

    assert {S.SUCCEEDED} == {await world.status(task_id) for task_id in tasks if task_id != tasks[7]}
    assert ["StepStopped"] == [note["reason"].split(": ")[1] for note in staff.notes.of("records_unreadable")]
    assert [] == staff.notes.of("loop_failed")


@pytest.mark.parametrize("kind", OF_ONE_REQUEST)
async def test_a_malformed_entry_that_cannot_be_buried_holds_up_no_other(
    world: World, kind: type[BrokerUnavailable]
) -> None:
    await world.queues.pause("default", by=OPERATOR)
    first = await world.submit()
    receipt = Receipt(QUEUE, 5, world.state.add_entry(QUEUE, 5, {"x": "y"}))
    last = await world.submit()
    staff = await world.hire(concurrency=4)
    staff.link.refuse("bury", by=kind)

    await world.queues.resume("default", by=OPERATOR)
    await world.advance(1)

    assert [S.SUCCEEDED] * 2 == [await world.status(task_id) for task_id in (first, last)]
    assert [receipt] == await world.backend.broker.owned(QUEUE, worker=staff.settings.worker_id)
    assert 1 == told(staff)
