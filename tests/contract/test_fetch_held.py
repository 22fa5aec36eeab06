"""WorkQueue.fetch, of entries that the worker owns already: one test for each sentence of its docstring."""

from msgspec.structs import replace

from dtq.domain.task import QueueName
from tests.contract.harness import Harness
from tests.contract.steps import LIMITS, PEER, VISIBILITY, cancel, now, submit, take
from tests.factories import QUEUE, WORKER, a_receipt, an_admission


async def test_held_entries_come_first_within_their_priority(harness: Harness) -> None:
    first = await submit(harness, priority=5)
    await take(harness)
    fresh = await submit(harness, priority=5)
    higher = await submit(harness, priority=6)
    assert first.receipt is not None

    deliveries = await take(harness, held=[first.receipt])

    assert [higher.task_id, first.task_id, fresh.task_id] == [one.fields["task_id"] for one in deliveries]


async def test_held_then_abandoned_then_fresh(harness: Harness) -> None:
    abandoned = await submit(harness)
    await take(harness, worker=PEER)
    await harness.advance(VISIBILITY)
    held = await submit(harness)
    await take(harness, worker=WORKER)
    fresh = await submit(harness)
    assert held.receipt is not None

    deliveries = await take(harness, worker=WORKER, reap_idle=VISIBILITY, held=[held.receipt])

    assert [held.task_id, abandoned.task_id, fresh.task_id] == [one.fields["task_id"] for one in deliveries]


async def test_held_entries_come_oldest_first_however_they_are_named(harness: Harness) -> None:
    receipts = [task.receipt for task in [await submit(harness, priority=5) for _ in range(3)] if task.receipt]
    await take(harness)

    assert receipts == [one.receipt for one in await take(harness, held=receipts[::-1])]


async def test_held_entries_of_one_moment_come_in_the_order_of_their_numbers(harness: Harness) -> None:
    admissions = [an_admission(now=now(harness), priority=5) for _ in range(60)]
    await harness.backend.broker.create(admissions, limits=LIMITS)
    receipts = [one.receipt for one in await take(harness, limit=60)]
    # a number of two digits, which as text comes before those of one
    assert any(receipt.entry_id.endswith("-10") for receipt in receipts)

    assert receipts == [one.receipt for one in await take(harness, held=receipts[::-1])]


async def test_a_held_entry_comes_back_once(harness: Harness) -> None:
    task = await submit(harness)
    await take(harness)
    await harness.advance(VISIBILITY)
    assert task.receipt is not None

    assert 1 == len(await take(harness, reap_idle=VISIBILITY, held=[task.receipt]))


async def test_held_entries_that_do_not_fit_stay_owned_and_are_not_returned(harness: Harness) -> None:
    low = await submit(harness, priority=0)
    await take(harness)
    high = await submit(harness, priority=9)
    assert low.receipt is not None

    deliveries = await take(harness, limit=1, held=[low.receipt])

    assert [high.task_id] == [one.fields["task_id"] for one in deliveries]
    assert [high.receipt, low.receipt] == list(await harness.backend.broker.owned(QUEUE, worker=WORKER))


async def test_of_held_entries_no_more_are_returned_than_there_is_room_for(harness: Harness) -> None:
    receipts = [task.receipt for task in [await submit(harness, priority=5) for _ in range(3)] if task.receipt]
    await take(harness)

    deliveries = await take(harness, limit=2, held=receipts)

    assert receipts[:2] == [one.receipt for one in deliveries]


async def test_a_held_entry_that_a_peer_has_taken_is_not_returned(harness: Harness) -> None:
    task = await submit(harness)
    await take(harness, worker=WORKER)
    await harness.advance(VISIBILITY)
    await take(harness, worker=PEER, reap_idle=VISIBILITY)
    assert task.receipt is not None

    assert [] == list(await take(harness, worker=WORKER, held=[task.receipt]))
    assert [task.receipt] == list(await harness.backend.broker.owned(QUEUE, worker=PEER))


async def test_an_entry_of_the_same_number_elsewhere_is_not_returned_as_a_held_one(harness: Harness) -> None:
    task = await submit(harness, priority=5)
    await take(harness)
    assert task.receipt is not None
    elsewhere = [replace(task.receipt, queue=QueueName("mail")), replace(task.receipt, priority=4)]

    assert [] == list(await take(harness, held=elsewhere))


async def test_the_owner_of_a_held_entry_that_is_taken_counts_as_heard_of_now(harness: Harness) -> None:
    task = await submit(harness)
    (delivery,) = await take(harness, worker=WORKER)
    await harness.backend.broker.release([delivery.receipt], worker=WORKER)

    assert [delivery.receipt] == [one.receipt for one in await take(harness, worker=WORKER, held=[delivery.receipt])]

    assert [] == list(await take(harness, worker=PEER, reap_idle=VISIBILITY))
    await harness.advance(VISIBILITY)
    assert [task.task_id] == [one.fields["task_id"] for one in await take(harness, worker=PEER, reap_idle=VISIBILITY)]


async def test_a_held_entry_that_is_gone_is_not_returned(harness: Harness) -> None:
    task = await submit(harness)
    await take(harness)
    await cancel(harness, task)
    assert task.receipt is not None

    assert [] == list(await take(harness, held=[task.receipt, a_receipt()]))
