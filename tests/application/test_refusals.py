"""What the broker refuses is no outage: nobody is spared because of it, and what is not refused goes on."""

from collections.abc import Callable
from typing import Any

import pytest

from dtq.domain.errors import OF_ONE_REQUEST, BrokerUnavailable
from dtq.domain.status import TaskStatus
from dtq.domain.task import QueueName
from tests.application import handlers
from tests.application.link import LOSSES, Link, Loss
from tests.application.world import Staff, World

S = TaskStatus
FOR_EVER = 10_000
VISIBILITY = 30
SWEEPS = {
    "return_stale": "claims",
    "known": "workers",
    "strays": "strays",
    "drop_consumers": "queues",
    "drop_marks": "marks",
    "keep_alive": "keep_alive",
}


async def a_leader(world: World) -> Staff:
    await world.age_server()
    staff = await world.hire()
    await world.advance(1)
    return staff


@pytest.mark.parametrize("method", ["strays", "next_due", "known"])
async def test_a_dead_workers_task_is_taken_over_in_time_although_something_is_refused(
    world: World, method: str
) -> None:
    staff = await a_leader(world)
    dead = await world.hire(concurrency=2)
    blocker = await world.submit("hold", timeout_ms=3_600_000)
    task_id = await world.submit("hold", timeout_ms=3_600_000)
    first, second = await world.task(blocker), await world.task(task_id)
    owned = [one for one in (first, second) if one.worker_id == dead.settings.worker_id]
    staff.link.refuse(method, times=FOR_EVER)
    dead.kill()
    handlers.let_all_go()
    await world.settle()

    await world.advance(VISIBILITY * 1.3)

    assert owned
    assert [2] * len(owned) == [(await world.task(one.task_id)).attempt for one in owned]


async def test_a_beat_that_is_refused_spares_no_peer(world: World) -> None:
    await world.age_server()
    staff = await world.hire(concurrency=3)
    await world.submit("hold", payload='{"gate": "own"}', timeout_ms=3_600_000)
    dead = await world.hire(concurrency=2)
    ids = [await world.submit("hold", payload='{"gate": "both"}', timeout_ms=3_600_000) for _ in range(4)]
    owned = [one for one in ids if (await world.task(one)).worker_id == dead.settings.worker_id]
    staff.link.refuse("extend", times=FOR_EVER)
    dead.kill()
    handlers.gate("both").open()
    await world.settle()

    await world.advance(VISIBILITY * 1.3)

    assert staff.notes.of("beat_failed")
    assert 2 == len(owned)
    assert [2, 2] == [(await world.task(task_id)).attempt for task_id in owned]


async def a_hindered_leader(world: World, hinder: Callable[[Link], None]) -> Staff:
    """A leader that something hinders from its first sweep on, for somewhat more than two minutes."""
    await world.age_server()
    staff = await world.hire_unconnected()

    def begin() -> None:
        staff.link.watch("acquire", lambda: None)
        hinder(staff.link)

    staff.link.watch("acquire", begin)
    staff.link.is_down = False
    await world.advance(150)
    return staff


def others_than(method: str) -> set[str]:
    """What a leader still does where *method* fails; consumers are not dropped before the workers are known."""
    return SWEEPS.keys() - {method, "drop_consumers" if method == "known" else method}


@pytest.mark.parametrize("method", SWEEPS)
async def test_a_sweep_that_is_refused_is_told_of_backs_off_and_keeps_no_other_waiting(
    world: World, method: str
) -> None:
    staff = await a_hindered_leader(world, lambda link: link.refuse(method, times=FOR_EVER))

    notes = staff.notes.of("sweep_failed")
    assert {SWEEPS[method]} <= {note["sweep"] for note in notes} <= {SWEEPS[method], "queues"}
    assert {"BrokerRefused"} == {note["error"] for note in notes}
    assert len([note for note in notes if note["sweep"] == SWEEPS[method]]) <= 150 / 4 + 6
    assert [] == [name for name in others_than(method) if not staff.link.calls[name]]


@pytest.mark.parametrize("method", SWEEPS)
async def test_an_unknown_fault_of_a_sweep_keeps_no_other_waiting(world: World, method: str) -> None:
    staff = await a_hindered_leader(world, lambda link: link.break_down(method, times=FOR_EVER))

    assert [] == [name for name in others_than(method) if not staff.link.calls[name]]
    assert {"UnknownFault"} == {note["error"] for note in staff.notes.of("sweep_failed")}


@pytest.mark.parametrize("loss", LOSSES)
async def test_a_sweep_that_is_never_answered_keeps_no_other_waiting(world: World, loss: Loss) -> None:
    staff = await a_hindered_leader(world, lambda link: link.lose("return_stale", loss, times=FOR_EVER))

    assert [] == [name for name in SWEEPS if not staff.link.calls[name]]
    assert "sweeps" in {note["loop"] for note in staff.notes.of("loop_failed")}


@pytest.mark.parametrize("kind", OF_ONE_REQUEST)
@pytest.mark.parametrize("method", ["keep_alive", "drop_consumers"])
async def test_a_queue_that_is_damaged_keeps_no_other_waiting(
    world: World, method: str, kind: type[BrokerUnavailable], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str] = set()
    sweep = getattr(world.backend.upkeep, method)

    async def only_where_it_is_whole(queue: QueueName, **rest: Any) -> Any:
        if queue == "a-damaged-one":
            raise kind("a key of another type")
        seen.add(queue)
        return await sweep(queue, **rest)

    monkeypatch.setattr(world.backend.upkeep, method, only_where_it_is_whole)
    for name in ("a-damaged-one", "b", "c"):
        await world.submit(queue=name)

    staff = await a_hindered_leader(world, lambda _: None)

    assert seen >= {"b", "c"}
    assert {SWEEPS[method]} == {note["sweep"] for note in staff.notes.of("sweep_failed")}


async def test_a_sweep_that_works_again_takes_its_turns_again(world: World) -> None:
    staff = await a_hindered_leader(world, lambda link: link.refuse("return_stale", times=8))
    before = staff.link.calls["return_stale"]

    await world.advance(60)

    assert 8 == len(staff.notes.of("sweep_failed"))
    assert 11 <= staff.link.calls["return_stale"] - before <= 12
    staff.link.refuse("return_stale", times=3)
    await world.advance(8)
    assert 8 + 3 == len(staff.notes.of("sweep_failed"))


async def test_an_outcome_that_the_broker_refuses_to_record_spares_no_peer(world: World) -> None:
    staff = await a_leader(world)
    await world.submit("hold")
    dead = await world.hire()
    task_id = await world.submit("hold", timeout_ms=3_600_000)
    assert dead.settings.worker_id == (await world.task(task_id)).worker_id
    dead.kill()
    staff.link.refuse("commit", times=13)
    handlers.let_all_go()

    await world.advance(40)

    assert 13 == len(staff.notes.of("commit_repeated"))
    assert 2 == (await world.task(task_id)).attempt
