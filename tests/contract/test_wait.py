"""WorkQueue.wait and owned: one test for each sentence of their docstrings."""

import asyncio
from datetime import timedelta

from dtq.domain.task import QueueName, Receipt, WorkerId
from tests.contract.harness import Harness
from tests.contract.steps import (
    LIMITS,
    PEER,
    VISIBILITY,
    now,
    seconds,
    submit,
    take,
)
from tests.factories import QUEUE, WORKER, an_admission

OTHER = QueueName("other")
MOMENT = timedelta(milliseconds=30)
LONG = seconds(5)


async def _wait(harness: Harness, *, worker: WorkerId = WORKER, timeout: timedelta = LONG) -> list[Receipt]:
    return list(await harness.backend.broker.wait(QUEUE, worker=worker, timeout=timeout))


async def test_wait_reads_at_once_what_was_ready_before(harness: Harness) -> None:
    task = await submit(harness)

    receipts = await harness.backend.broker.wait(QUEUE, worker=WORKER, timeout=LONG)

    assert [task.receipt] == list(receipts)
    assert [task.receipt] == list(await harness.backend.broker.owned(QUEUE, worker=WORKER))


async def test_wait_ends_with_nothing_when_its_time_is_over(harness: Harness) -> None:
    await harness.backend.queues.register(QUEUE)
    waiting = asyncio.create_task(_wait(harness, timeout=MOMENT))

    await harness.advance(MOMENT)

    assert [] == await waiting


async def test_wait_wakes_when_an_entry_is_added(harness: Harness) -> None:
    await harness.backend.queues.register(QUEUE)
    waiting = asyncio.create_task(_wait(harness))
    await harness.advance(MOMENT)

    task = await submit(harness, priority=0)

    assert [task.receipt] == await waiting


async def test_wait_is_not_woken_by_another_queue(harness: Harness) -> None:
    await harness.backend.queues.register(QUEUE)
    waiting = asyncio.create_task(_wait(harness, timeout=10 * MOMENT))
    await harness.advance(MOMENT)
    await submit(harness, queue=OTHER)

    await harness.advance(9 * MOMENT)

    assert [] == await waiting


async def test_wait_reads_at_most_one_entry_a_priority(harness: Harness) -> None:
    for priority in (7, 7, 2, 2):
        await submit(harness, priority=priority)

    receipts = await harness.backend.broker.wait(QUEUE, worker=WORKER, timeout=LONG)

    assert sorted({receipt.priority for receipt in receipts}) == sorted(receipt.priority for receipt in receipts)
    assert len(receipts) == (await harness.backend.queues.stats(QUEUE)).pending


async def test_an_idle_worker_gets_ten_tasks_of_one_batch_in_the_order_of_their_priorities(harness: Harness) -> None:
    await harness.backend.queues.register(QUEUE)
    waiting = asyncio.create_task(_wait(harness))
    await harness.advance(MOMENT)
    admissions = [an_admission(now=now(harness), priority=priority) for priority in range(10)]
    await harness.backend.broker.create(admissions, limits=LIMITS)

    receipts = await waiting
    deliveries = await take(harness, limit=10, held=receipts)

    assert receipts
    assert list(range(9, -1, -1)) == [one.receipt.priority for one in deliveries]


async def test_of_two_that_wait_one_gets_the_entry(harness: Harness) -> None:
    await harness.backend.queues.register(QUEUE)
    both = [asyncio.create_task(_wait(harness, worker=worker, timeout=10 * MOMENT)) for worker in (WORKER, PEER)]
    await harness.advance(MOMENT)
    task = await submit(harness)

    await harness.advance(9 * MOMENT)

    assert [task.receipt] == [receipt for one in both for receipt in await one]


async def test_owned_lists_highest_priority_first(harness: Harness) -> None:
    tasks = {priority: await submit(harness, priority=priority) for priority in (0, 7, 3)}
    await take(harness)
    await submit(harness, priority=9)

    owned = await harness.backend.broker.owned(QUEUE, worker=WORKER)

    assert [tasks[priority].receipt for priority in (7, 3, 0)] == list(owned)


async def test_owned_is_empty_for_a_stranger(harness: Harness) -> None:
    assert [] == list(await harness.backend.broker.owned(QUEUE, worker=PEER))


async def test_an_entry_that_is_not_owned_any_more_is_not_handed_back(harness: Harness) -> None:
    task = await submit(harness)
    await take(harness, worker=WORKER)
    await harness.advance(VISIBILITY)
    await take(harness, worker=PEER, reap_idle=VISIBILITY)
    assert task.receipt is not None

    assert 0 == await harness.backend.broker.release([task.receipt], worker=WORKER)
    assert [] == list(await take(harness, worker=WORKER, reap_idle=VISIBILITY))


async def test_wait_reads_again_what_was_read_before_the_groups_were_lost(harness: Harness) -> None:
    task = await submit(harness)
    await take(harness, worker=PEER)
    await harness.lose_groups(QUEUE)

    receipts = await harness.backend.broker.wait(QUEUE, worker=WORKER, timeout=LONG)

    assert [task.receipt] == list(receipts)
    assert [task.receipt] == list(await harness.backend.broker.owned(QUEUE, worker=WORKER))


async def test_a_priority_that_cannot_be_read_is_left_out(harness: Harness) -> None:
    await harness.backend.queues.register(QUEUE)
    high, low = await submit(harness, priority=8), await submit(harness, priority=0)
    await harness.spoil(QUEUE, priority=9)

    receipts = await harness.backend.broker.wait(QUEUE, worker=WORKER, timeout=seconds(5))

    assert {high.receipt, low.receipt} == set(receipts)
