"""What the poll loop asks of the broker, and when: no more than it must, and never too late."""

from tests.application import handlers
from tests.application.link import Loss
from tests.application.world import World
from tests.factories import QUEUE, WORKER


async def hand_back_unheard(world: World) -> None:
    """Somebody has read a task and handed it back, and nobody was told."""
    fetched = await world.backend.broker.fetch(QUEUE, worker=WORKER, limit=1, reap_idle=None)
    await world.backend.broker.release([one.receipt for one in fetched.deliveries], worker=WORKER)


async def test_an_idle_worker_only_waits_between_its_turns_of_reaping(world: World) -> None:
    staff = await world.hire()
    await world.advance(0.9)
    before = staff.link.calls["fetch"]

    await world.advance(4)

    assert before == staff.link.calls["fetch"]
    assert 8 <= staff.link.calls["wait"] <= 12


async def test_an_idle_worker_reaps_four_times_a_visibility_timeout(world: World) -> None:
    await world.age_server()
    staff = await world.hire()
    before = staff.link.calls["fetch"]

    await world.advance(60)

    assert 8 <= staff.link.calls["fetch"] - before <= 12


async def test_a_wake_leads_to_a_sweep_that_takes_all_there_is(world: World) -> None:
    staff = await world.hire(concurrency=20)
    before = staff.link.calls["wait"]

    await world.tasks.submit_many([{"task_type": "note", "payload": "{}"}] * 20)
    await world.settle()

    assert 20 == len(handlers.runs)
    assert before + 1 == staff.link.calls["wait"]


async def test_a_sweep_that_found_nothing_is_followed_by_one_that_reaps(world: World) -> None:
    staff = await world.hire()
    await world.advance(1)
    await world.submit("hold", payload='{"gate": "first"}')
    await world.submit()
    await hand_back_unheard(world)

    handlers.gate("first").open()
    await world.settle()

    assert 2 == len(handlers.runs)
    assert 1 == world.clock.monotonic()
    assert 0 == staff.link.calls["release"]


async def test_a_full_worker_asks_for_nothing(world: World) -> None:
    staff = await world.hire()
    await world.submit("hold", timeout_ms=600_000)
    await world.advance(1)
    before = staff.link.calls["fetch"], staff.link.calls["wait"]

    await world.advance(60)

    assert before == (staff.link.calls["fetch"], staff.link.calls["wait"])


async def test_after_an_incomplete_sweep_the_worker_looks_at_what_it_owns(world: World) -> None:
    staff = await world.hire()
    before = staff.link.calls["owned"]
    world.state.faults.spoiled.add((QUEUE, 3))

    await world.submit()
    await world.advance(1)

    assert staff.link.calls["owned"] > before
    assert 1 == len(handlers.runs)


async def test_an_answer_that_nobody_understands_strands_no_entry(world: World) -> None:
    for method in ("fetch", "wait", "commit"):
        handlers.runs.clear()
        staff = await world.hire()
        staff.link.lose(method, Loss.GARBLED)

        await world.submit()
        await world.advance(3)

        assert 1 == len(handlers.runs), method
        staff.stop()
        await world.advance(1)


async def test_after_an_outage_that_only_the_beat_saw_the_worker_looks_at_what_it_owns(world: World) -> None:
    staff = await world.hire()
    await world.submit("hold", timeout_ms=600_000)
    before = staff.link.calls["owned"]
    staff.link.lose("announce", Loss.BEFORE)

    await world.advance(6)

    assert before + 1 == staff.link.calls["owned"]
    assert [{"error": "BrokerUnavailable", "reason": "the link is down"}] == staff.notes.of("beat_failed")
