"""A worker that stood still so long that another one has begun under its id: it ends, and touches nothing."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from dtq.application.hand_back import HandBack
from dtq.application.loops.beat import Beat
from dtq.application.presence import WorkerReplaced
from dtq.application.settings import ExitCode
from dtq.domain.events import EventType
from dtq.domain.status import TaskStatus
from dtq.domain.task import LeaseToken, QueueName, WorkerId
from tests.application import handlers
from tests.application.world import Staff, WatchedBeat, World
from tests.factories import QUEUE, a_heartbeat

ID = WorkerId("worker-1")
LIFETIME = 15.0
"""How long a sign of life lasts."""

LONG_MS = 3_600_000


class Replaced:
    """The tenure of a worker whose id another one has taken."""

    async def ensure(self) -> None:
        raise WorkerReplaced

    async def renew(self) -> None:
        raise WorkerReplaced


class Unsure:
    """The tenure of a worker that has it for now, and has lost it by the time it asks the broker."""

    async def ensure(self) -> None:
        return None

    async def renew(self) -> None:
        raise WorkerReplaced


async def an_absent_one(world: World, *methods: str) -> Staff:
    """A worker of which nothing is heard until its sign of life has expired."""
    await world.age_server()
    staff = await world.hire(worker_id=ID, concurrency=2)
    staff.link.stall("announce", "extend", *methods)
    return staff


async def its_successor(world: World, *, concurrency: int = 2) -> Staff:
    await world.advance(LIFETIME + 1)
    staff = await world.hire(worker_id=ID, concurrency=concurrency)
    assert not staff.life.done()
    return staff


async def test_a_worker_that_comes_back_after_its_successor_ends(world: World) -> None:
    first = await an_absent_one(world)
    second = await its_successor(world)

    first.link.go_on()
    await world.advance(1)

    assert isinstance(first.life.exception(), WorkerReplaced)
    heartbeat = await world.backend.workers.get(ID)
    assert heartbeat is not None
    await world.advance(60)
    assert not second.life.done()
    assert [] == [event for event in first.notes.events if event.type is EventType.WORKER_STOPPED]


async def test_a_worker_ends_as_soon_as_its_beat_is_refused(world: World) -> None:
    staff = await world.hire(worker_id=ID)
    earlier = a_heartbeat(worker_id=ID, started_at=world.clock.now() - timedelta(hours=1))
    handover = staff.worker._handover  # noqa: SLF001 - by which a beat tells its worker
    beat = Beat(handover, settings=staff.settings, heartbeat=earlier, abort=staff.aborted.append)

    await beat._announce(staff.backend)  # noqa: SLF001 - as another process does that has lost its id to this worker
    await world.settle()

    assert isinstance(staff.life.exception(), WorkerReplaced)


async def test_a_worker_that_cannot_tell_whether_it_was_replaced_goes_on_as_in_an_outage(world: World) -> None:
    staff = await world.hire(worker_id=ID, concurrency=2)
    first = await world.submit("hold", timeout_ms=LONG_MS)
    await world.advance(1)
    staff.link.refuse("announce", times=10_000)
    await world.advance(LIFETIME + 6)

    second = await world.submit("hold", timeout_ms=LONG_MS)
    handlers.let_all_go()
    await world.advance(10)

    assert not staff.life.done()
    assert [TaskStatus.SUCCEEDED, TaskStatus.QUEUED] == [await world.status(one) for one in (first, second)]
    assert {("BrokerRefused", "announce is refused")} == {
        (note["error"], note["reason"]) for what in ("beat_failed", "loop_failed") for note in staff.notes.of(what)
    }


async def test_a_worker_that_can_tell_again_takes_work_again(world: World) -> None:
    staff = await world.hire(worker_id=ID)
    await world.advance(1)
    staff.link.refuse("announce", times=30)
    await world.advance(LIFETIME + 6)
    task_id = await world.submit()

    await world.advance(60)

    assert not staff.life.done()
    assert TaskStatus.SUCCEEDED == await world.status(task_id)


async def test_what_its_successor_runs_runs_on(world: World) -> None:
    first = await an_absent_one(world)
    second = await its_successor(world)
    ids = [await world.submit("hold", timeout_ms=LONG_MS) for _ in range(2)]
    assert 2 == second.active
    first.worker._crew.outage()  # noqa: SLF001 - as an answer does that comes too late: it looks at what it owns

    first.link.go_on()
    await world.advance(60)
    handlers.let_all_go()
    await world.settle()

    assert 0 == first.link.calls["release"]
    assert 0 == second.active
    for task_id in ids:
        task = await world.task(task_id)
        assert (TaskStatus.SUCCEEDED, 1) == (task.status, task.attempt)


async def test_a_worker_without_a_link_ends_when_it_has_one_again(world: World) -> None:
    await world.age_server()
    first = await world.hire(worker_id=ID)
    first.link.is_down = True
    second = await its_successor(world)
    task_id = await world.submit("hold", timeout_ms=LONG_MS)

    first.link.is_down = False
    await world.advance(10)

    assert isinstance(first.life.exception(), WorkerReplaced)
    assert (1, 1) == ((await world.task(task_id)).attempt, second.active)


async def test_a_worker_whose_beat_is_dead_finds_out_by_itself(world: World) -> None:
    await world.age_server()
    first = await world.hire(worker_id=ID, beat=WatchedBeat([]))
    first.link.stall("announce", "fetch")
    await its_successor(world)

    first.link.go_on()
    await world.advance(1)

    assert isinstance(first.life.exception(), WorkerReplaced)


async def test_what_it_had_read_before_is_not_started_again(world: World) -> None:
    first = await an_absent_one(world, "fetch")
    task_id = await world.submit("hold", timeout_ms=LONG_MS)
    assert 1 == await world.pending()
    second = await its_successor(world)
    assert 1 == second.active

    first.link.go_on()
    await world.settle()

    assert isinstance(first.life.exception(), WorkerReplaced)
    assert 1 == (await world.task(task_id)).attempt
    assert 1 == len(handlers.runs)


async def test_a_worker_takes_nothing_while_its_sign_of_life_does_not_last(world: World) -> None:
    first = await an_absent_one(world)
    await world.advance(LIFETIME + 1)
    fetches = first.link.calls["fetch"]

    await world.submit()
    await world.advance(30)

    assert fetches == first.link.calls["fetch"]
    assert [] == handlers.runs
    first.link.go_on()
    await world.settle()
    assert 1 == len(handlers.runs)
    assert not first.life.done()


async def test_a_replaced_worker_that_was_to_drain_says_no_goodbye(world: World) -> None:
    first = await an_absent_one(world)
    second = await its_successor(world)
    task_id = await world.submit("hold", timeout_ms=LONG_MS)
    first.worker.request_stop()

    first.link.go_on()
    await world.advance(10)

    assert isinstance(first.life.exception(), WorkerReplaced)
    assert 0 == first.link.calls["release"] == first.link.calls["retire"]
    assert (1, 1) == ((await world.task(task_id)).attempt, second.active)


@pytest.mark.parametrize("tenure", [Replaced(), Unsure()])
async def test_nothing_is_handed_back_by_a_worker_that_was_replaced(world: World, tenure: Replaced | Unsure) -> None:
    broker = world.backend.broker
    await world.submit()
    fetched = await broker.fetch(QUEUE, worker=ID, limit=1, reap_idle=None)
    hand_back = HandBack(
        broker,
        signals=world.backend.signals,
        tenure=tenure,
        worker=ID,
        queue=QueueName(QUEUE),
        on_done=lambda: None,
    )

    with pytest.raises(WorkerReplaced):
        await hand_back.give_all_but(())
    if isinstance(tenure, Replaced):
        with pytest.raises(WorkerReplaced):
            await hand_back.give([one.receipt for one in fetched.deliveries])

    peer = await broker.fetch(QUEUE, worker=WorkerId("peer"), limit=1, reap_idle=timedelta(hours=1))
    assert [] == list(peer.deliveries)


async def test_a_hung_worker_gives_up_only_what_its_tasks_say_is_its_own(world: World) -> None:
    staff = await world.hire(concurrency=2)
    own, others = [await world.submit("hold", timeout_ms=1000) for _ in range(2)]
    await world.settle()
    world.rewrite(replace(await world.task(others), lease=LeaseToken("another one's")))
    holds = staff.worker._handover.condition.holds  # noqa: SLF001 - what its beat looks at
    handover = staff.worker._handover  # noqa: SLF001 - the same
    beat = Beat(handover, settings=staff.settings, heartbeat=a_heartbeat(), abort=staff.aborted.append)

    await beat._give_up(staff.backend, holds)  # noqa: SLF001 - as when the main loop hangs

    assert [ExitCode.HUNG] == staff.aborted
    fetched = await world.backend.broker.fetch(QUEUE, worker=WorkerId("peer"), limit=2, reap_idle=timedelta(hours=1))
    assert [own] == [one.task.task_id for one in fetched.deliveries if one.task is not None]
