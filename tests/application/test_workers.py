"""Looking at workers, and at queues with what surrounds them."""

import asyncio
from datetime import timedelta

import pytest

from dtq.application.abreast import AT_ONCE, abreast
from dtq.domain.errors import BrokerUnavailable, InvalidRequest, QueueNotFound, WorkerNotFound
from dtq.domain.task import QueueName, WorkerId
from dtq.domain.workers import WorkerStatus
from tests.application.world import World
from tests.factories import WORKER, a_heartbeat

TERM = timedelta(seconds=15)
MAIL = QueueName("mail")


async def register(world: World, number: int = 1, **changes: object) -> WorkerId:
    worker_id = WorkerId(f"worker-{number:08x}")
    heartbeat = a_heartbeat(worker_id=worker_id, **{"last_heartbeat": world.clock.now(), **changes})
    assert await world.backend.workers.announce(heartbeat, expires_in=TERM)
    return worker_id


async def test_workers_are_listed_in_the_order_of_their_ids(world: World) -> None:
    ids = [await register(world, number) for number in (3, 1, 2)]

    views = await world.workers.all(limit=2)

    assert sorted(ids)[:2] == [view.worker_id for view in views]
    assert [WorkerStatus.READY] * 2 == [view.status for view in views]


async def test_a_worker_that_is_silent_for_three_heartbeats_is_stale(world: World) -> None:
    worker_id = await register(world)
    assert WorkerStatus.READY is (await world.workers.get(worker_id)).status

    await world.advance(14.9)
    assert WorkerStatus.READY is (await world.workers.get(worker_id)).status
    await world.advance(0.2)

    view = await world.workers.get(worker_id)
    assert (WorkerStatus.STALE, None) == (view.status, view.heartbeat)


@pytest.mark.parametrize("worker_id", [WORKER, "worker-ffffffff", "", "a b", "a\n", "x" * 65, "worker:*"])
async def test_an_unknown_worker_is_not_found(world: World, worker_id: str) -> None:
    with pytest.raises(WorkerNotFound):
        await world.workers.get(worker_id)


async def test_a_name_that_no_worker_can_have_is_not_asked_for(world: World) -> None:
    with pytest.raises(WorkerNotFound):
        await world.workers.get("x" * 65)

    assert 0 == world.link.calls["get"]


@pytest.mark.parametrize("limit", [0, 501])
async def test_a_bad_limit_is_refused(world: World, limit: int) -> None:
    for listing in (world.workers.all, world.queues.all):
        with pytest.raises(InvalidRequest, match="limit"):
            await listing(limit=limit)


async def test_a_queue_counts_the_workers_that_serve_it_and_are_heard(world: World) -> None:
    await register(world, 1, queue=MAIL)
    await register(world, 2, queue=MAIL, status=WorkerStatus.DRAINING)
    await register(world, 3, queue=MAIL, status=WorkerStatus.STOPPED)
    await register(world, 4)
    await register(world, 5, queue=MAIL, last_heartbeat=world.clock.now() - TERM - timedelta(seconds=1))

    assert 2 == await world.workers.active(MAIL)


async def test_queues_are_listed_in_alphabetical_order(world: World) -> None:
    for queue in ("c", "a", "b"):
        await world.submit(queue=queue)

    assert ["a", "b"] == [stats.queue for stats in await world.queues.all(limit=2)]


async def test_only_the_default_queue_is_shown_before_it_is_known(world: World) -> None:
    assert 0 == (await world.queues.detail("default")).stats.depth

    with pytest.raises(QueueNotFound, match="mail"):
        await world.queues.detail("mail")
    with pytest.raises(InvalidRequest, match="queue"):
        await world.queues.detail("Mail")


async def test_no_more_than_some_are_asked_at_once_and_the_order_stays() -> None:
    asked = most = 0

    async def ask(number: int) -> int:
        nonlocal asked, most
        asked += 1
        most = max(most, asked)
        await asyncio.wait([asyncio.ensure_future(_nothing())])
        asked -= 1
        return -number

    assert [-number for number in range(100)] == await abreast(range(100), ask)
    assert most == AT_ONCE


async def _nothing() -> None:
    return None


async def test_what_one_raises_is_raised() -> None:
    async def ask(number: int) -> int:
        if number == 40:
            raise BrokerUnavailable("away")
        return number

    with pytest.raises(BrokerUnavailable):
        await abreast(range(100), ask)
