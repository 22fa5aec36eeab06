"""Fetches abreast, while there is more work than slots: what they ask for, and what they take together."""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import pytest

from dtq.application.nudge import others_first
from dtq.application.taking import Taking
from dtq.domain.task import Receipt
from dtq.ports.broker import Fetch
from dtq.ports.workers import Signal, SignalKind
from tests.application import handlers
from tests.application.rush import behind, delay_second_answer, open_both_gates, submit_notes, watch_fetches
from tests.application.world import EXPIRING, World
from tests.factories import QUEUE


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


async def test_no_more_are_under_way_where_there_always_seems_to_be_room(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    staff = await behind(world)
    before, rooms = staff.link.calls["fetch"], iter([True] * 9)
    # as where one handler after the other ends just before the loop looks
    monkeypatch.setattr(Taking, "has_room", property(lambda _: next(rooms, False)))

    handlers.gate("first").open()
    await world.settle()

    assert 2 == staff.link.calls["fetch"] - before


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


async def test_the_ends_of_threads_that_go_on_make_no_room(world: World) -> None:
    staff = await world.hire(concurrency=4)
    for _ in range(2):
        await world.submit("thread", timeout_ms=1_000, max_attempts=1)
    await world.until(lambda: len(handlers.runs) == 2)
    crew = staff.worker._crew  # noqa: SLF001 - it takes a rush to have such an end and another fetch meet
    crew.settling.wait(lambda: None)
    for job in crew.in_flight.active():
        job.attempt.overrun()
    staff.link.stall("fetch")
    for _ in range(8):
        await world.submit("hold")

    fetches = [asyncio.create_task(crew.poll._parts.taking.take(at_most=2)) for _ in range(2)]  # noqa: SLF001 - the same
    await world.settle()
    staff.link.go_on()
    await asyncio.wait(fetches)

    assert (0, 4) == (crew.in_flight.free, len(handlers.runs))
    handlers.let_all_go()


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
