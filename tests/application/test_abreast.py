"""Fetches abreast, while there is more work than slots: what they take together, and what becomes of it."""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import pytest

from dtq.application.nudge import others_first
from dtq.domain.status import TaskStatus
from dtq.domain.task import Receipt, TaskId
from dtq.ports.broker import Fetch, LeaseReport
from dtq.ports.workers import Signal, SignalKind
from tests.application import handlers
from tests.application.link import Loss
from tests.application.world import EXPIRING, Staff, World
from tests.factories import QUEUE

S = TaskStatus


async def behind(world: World, *, concurrency: int = 4, submitted: Mapping[str, Any] = {}) -> Staff:
    """A worker all of whose slots are taken, with as much again waiting, and whose next fetches stand still."""
    await world.age_server()
    staff = await world.hire(concurrency=concurrency)
    for gate in ("first", "second"):
        for _ in range(concurrency):
            await world.submit("hold", payload=f'{{"gate": "{gate}"}}', **submitted)
    await world.settle()
    assert concurrency == staff.active
    staff.link.stall("fetch")
    return staff


def open_both_gates() -> None:
    handlers.gate("first").open()
    handlers.gate("second").open()


async def submit_notes(world: World, number: int) -> list[TaskId]:
    return [await world.submit(priority=0) for _ in range(number)]


def watch_fetches(world: World, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return what the fetches of all workers ask for, from now on."""
    asked: list[dict[str, Any]] = []
    fetch = world.backend.broker.fetch

    async def watched(*arguments: Any, **named: Any) -> Fetch:
        asked.append(named)
        return await fetch(*arguments, **named)

    monkeypatch.setattr(world.backend.broker, "fetch", watched)
    return asked


def delay_second_answer(world: World, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Let the answer of the second fetch that reaches the broker wait for what is returned."""
    answered, calls = asyncio.Event(), count(1)
    fetch = world.backend.broker.fetch

    async def delayed(*arguments: Any, **named: Any) -> Fetch:
        is_second = next(calls) == 2
        fetched = await fetch(*arguments, **named)
        if is_second:
            await answered.wait()
        return fetched

    monkeypatch.setattr(world.backend.broker, "fetch", delayed)
    return answered


def lose_all_leases(staff: Staff) -> None:
    """Let the worker hear that all it runs belongs to others."""
    crew = staff.worker._crew  # noqa: SLF001 - else only a minute's pause brings this about
    crew.leases.note([LeaseReport(lease=hold.lease.lease, kept=False) for hold in crew.in_flight.holds])


@pytest.mark.parametrize(("concurrency", "abreast"), [(1, 1), (2, 2), (4, 2), (47, 2), (48, 3), (64, 4), (100, 4)])
async def test_several_are_under_way_each_for_its_share_of_the_slots(
    world: World, concurrency: int, abreast: int
) -> None:
    staff = await behind(world, concurrency=concurrency)
    before = staff.link.calls["fetch"]

    handlers.gate("first").open()
    await world.settle()
    under_way = staff.link.calls["fetch"] - before
    staff.link.go_on()
    await world.settle()

    assert abreast == under_way
    assert concurrency == staff.active


@pytest.mark.parametrize("submitted", [{}, EXPIRING], ids=["started by the fetch", "started on its own"])
async def test_together_they_take_no_more_than_there_are_slots(world: World, submitted: Mapping[str, Any]) -> None:
    staff = await behind(world, submitted=submitted)
    await submit_notes(world, 20)
    handlers.gate("first").open()
    await world.settle()

    staff.link.go_on()
    await world.settle()

    assert 4 == staff.active == len(await world.backend.broker.owned(QUEUE, worker=staff.settings.worker_id))
    assert 8 == len(handlers.runs)


async def test_an_empty_slot_is_promised_once(world: World) -> None:
    staff = await world.hire(concurrency=4)
    await world.advance(1)
    taking = staff.worker._crew.poll._parts.taking  # noqa: SLF001 - so that one more is under way than the loop would send
    staff.link.stall("fetch")
    for _ in range(8):
        await world.submit("hold")
    await world.settle()
    assert not taking.has_room

    more = asyncio.create_task(taking.take(at_most=3))
    await world.settle()
    staff.link.go_on()
    await world.settle()

    assert not (await more).fetched.deliveries
    assert 4 == staff.active == len(await world.backend.broker.owned(QUEUE, worker=staff.settings.worker_id))


async def test_what_is_yet_to_be_started_has_its_slot(world: World) -> None:
    staff = await world.hire(concurrency=4)
    taking = staff.worker._crew.poll._parts.taking  # noqa: SLF001 - what would let another fetch take too much
    staff.link.stall("fetch")
    for _ in range(8):
        await world.submit("hold", **EXPIRING)
    await world.settle()
    rooms: list[bool] = []
    staff.link.watch("commit", lambda: rooms.append(taking.has_room))

    staff.link.go_on()
    await world.settle()

    assert [False] == rooms


async def test_after_an_outage_that_only_one_of_them_has_met_the_worker_is_cautious(world: World) -> None:
    staff = await behind(world)
    await world.advance(15)
    reaping = staff.worker._crew.reaping  # noqa: SLF001 - a caution shows in what is not done for some seconds
    assert staff.settings.visibility_timeout == reaping.idle
    staff.link.lose("fetch", Loss.GARBLED)
    staff.link.lose("fetch", Loss.BEFORE)
    # so that neither of them carries an end, which would tell of the outage, too
    lose_all_leases(staff)
    await world.settle()

    staff.link.go_on()
    await world.advance(3)

    assert staff.settings.visibility_timeout < reaping.idle


async def test_while_one_is_under_way_the_worker_hands_nothing_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    staff = await behind(world)
    answered = delay_second_answer(world, monkeypatch)
    staff.link.lose("fetch", Loss.AFTER)
    handlers.gate("first").open()
    await world.settle()

    staff.link.go_on()
    await world.advance(3)
    answered.set()
    handlers.gate("second").open()
    await world.advance(3)

    assert (8, 0) == (len(handlers.runs), staff.link.calls["release"])
    assert 1 == len(staff.notes.of("loop_failed"))


async def test_where_one_found_nothing_the_queue_is_not_yet_taken_for_empty(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    staff = await behind(world)
    await world.hire(concurrency=4)
    await world.backend.signals.tell_queue(QUEUE, Signal(kind=SignalKind.WORK))
    await world.settle()
    answered, before = delay_second_answer(world, monkeypatch), staff.link.calls["wait"]

    handlers.gate("first").open()
    await world.settle()
    staff.link.go_on()
    await world.settle()
    assert before == staff.link.calls["wait"]
    answered.set()
    await world.settle()

    assert before + 1 == staff.link.calls["wait"]


@pytest.mark.parametrize("loss", Loss)
async def test_where_one_of_them_fails_all_that_they_took_runs_once(world: World, loss: Loss) -> None:
    staff = await behind(world)
    staff.link.lose("fetch", loss)
    open_both_gates()
    await world.settle()

    staff.link.go_on()
    await world.advance(10)

    assert 8 == len(handlers.runs) == len({run.task_id for run in handlers.runs})
    assert {1} == {run.attempt for run in handlers.runs}
    assert {S.SUCCEEDED} == {await world.status(run.task_id) for run in handlers.runs}
    assert 4 == staff.free
    assert 1 == len(staff.notes.of("loop_failed"))


async def test_of_those_that_fail_each_is_told_of(world: World) -> None:
    staff = await behind(world)
    staff.link.lose("fetch", Loss.AFTER)
    staff.link.lose("fetch", Loss.GARBLED)
    open_both_gates()
    await world.settle()

    staff.link.go_on()
    await world.advance(10)

    assert ["OutcomeUnknown", "UnknownFault"] == [note["error"] for note in staff.notes.of("loop_failed")]
    assert 8 == len({run.task_id for run in handlers.runs}) == len(handlers.runs)


async def test_a_worker_that_is_to_stop_drains_what_they_take(world: World) -> None:
    staff = await behind(world)
    handlers.gate("first").open()
    await world.settle()

    staff.stop()
    staff.link.go_on()
    await world.settle()
    assert 4 == staff.active
    handlers.gate("second").open()
    await world.settle()

    assert 0 == staff.life.result()
    assert {S.SUCCEEDED} == {await world.status(run.task_id) for run in handlers.runs}


async def test_what_they_take_that_is_looked_at_first_does_not_start_once_the_worker_is_to_stop(world: World) -> None:
    staff = await behind(world, submitted=EXPIRING)
    handlers.gate("first").open()
    await world.settle()

    staff.stop()
    staff.link.go_on()
    await world.settle()

    assert 0 == staff.life.result()
    assert 4 == len(handlers.runs)
    other = await world.hire(concurrency=4)
    assert 4 == other.active


async def test_a_worker_that_ends_at_once_lets_go_of_them(world: World) -> None:
    staff = await behind(world)
    handlers.gate("first").open()
    await world.settle()

    staff.stop()
    staff.stop()
    await world.settle()
    staff.link.go_on()
    await world.settle()

    assert staff.life.done()
    assert 4 == len(handlers.runs)


async def test_one_of_them_reaps(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    staff = await behind(world)
    await world.backend.signals.tell_queue(QUEUE, Signal(kind=SignalKind.WORK))
    await world.settle()
    asked = watch_fetches(world, monkeypatch)

    handlers.gate("first").open()
    await world.settle()
    staff.link.go_on()
    await world.settle()

    assert [True, False] == [one["reap_idle"] is not None for one in asked[:2]]


async def test_what_the_blocking_read_brought_waits_for_no_end_of_the_rush(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered, calls = asyncio.Event(), count(1)
    wait, fetch = world.backend.broker.wait, world.backend.broker.fetch

    async def late(*arguments: Any, **named: Any) -> Sequence[Receipt]:
        receipts = await wait(*arguments, **named)
        if receipts:
            await answered.wait()
        return receipts

    async def slow(*arguments: Any, **named: Any) -> Fetch:
        fetched = await fetch(*arguments, **named)
        # the first of two is quicker, so that from then on one is under way when another one is answered
        for _ in range(5 if next(calls) == 2 else 10):
            await others_first()
        if len(handlers.runs) > 10:
            answered.set()
        return fetched

    await world.hire(concurrency=2)
    await world.advance(1)
    monkeypatch.setattr(world.backend.broker, "fetch", slow)
    monkeypatch.setattr(world.backend.broker, "wait", late)
    await world.advance(1)
    urgent = await world.submit(priority=9)
    await world.settle()
    await submit_notes(world, 40)

    await world.backend.signals.tell_queue(QUEUE, Signal(kind=SignalKind.WORK))
    await world.settle()
    await world.settle()

    assert 41 == len(handlers.runs)
    assert [run.task_id for run in handlers.runs].index(urgent) < 20


async def test_a_worker_that_has_caught_up_fetches_for_all_its_slots_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    staff = await behind(world)
    open_both_gates()
    staff.link.go_on()
    await world.advance(1)
    asked = watch_fetches(world, monkeypatch)

    await world.advance(60)

    assert {4} == {one["limit"] for one in asked}
    assert 8 <= len(asked) <= 12
