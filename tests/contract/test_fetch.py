"""WorkQueue.fetch: one test for each sentence of its docstring."""

import pytest

from dtq.domain.errors import OutcomeUnknown
from dtq.domain.status import Place
from dtq.domain.task import QueueName
from tests.contract.harness import Harness
from tests.contract.steps import (
    PEER,
    VISIBILITY,
    run,
    seconds,
    submit,
    take,
)
from tests.factories import QUEUE, WORKER, an_audit_entry, an_event

OTHER = QueueName("other")


async def test_fetch_takes_from_priority_9_down_to_0(harness: Harness) -> None:
    for priority in (4, 0, 9, 5, 1, 8):
        await submit(harness, priority=priority)

    assert [9, 8, 5, 4, 1, 0] == [one.receipt.priority for one in await take(harness)]


async def test_fetch_takes_no_lower_priority_while_a_higher_one_fills_the_limit(harness: Harness) -> None:
    low = await submit(harness, priority=0)
    high = [await submit(harness, priority=9) for _ in range(3)]

    first = await take(harness, limit=2)
    second = await take(harness, limit=2)

    assert [task.task_id for task in high[:2]] == [one.fields["task_id"] for one in first]
    assert [high[2].task_id, low.task_id] == [one.fields["task_id"] for one in second]


async def test_fetch_takes_the_oldest_of_a_priority_first(harness: Harness) -> None:
    tasks = [await submit(harness) for _ in range(12)]

    assert [task.task_id for task in tasks] == [one.fields["task_id"] for one in await take(harness)]


@pytest.mark.parametrize("limit", [0, 1, 7, 30])
async def test_fetch_takes_at_most_the_limit(harness: Harness, limit: int) -> None:
    for number in range(20):
        await submit(harness, priority=number % 2)

    assert min(20, limit) == len(await take(harness, limit=limit))
    assert min(20, limit) == (await harness.backend.queues.stats(QUEUE)).pending


async def test_fetch_does_not_wait(harness: Harness) -> None:
    assert [] == list(await take(harness))


async def test_what_was_fetched_is_the_workers_own(harness: Harness) -> None:
    task = await submit(harness)

    await take(harness, worker=WORKER)

    broker = harness.backend.broker
    assert [task.receipt] == list(await broker.owned(QUEUE, worker=WORKER))
    assert [] == list(await broker.owned(QUEUE, worker=PEER))
    assert {task.task_id} == (await harness.census())[Place.HELD]


async def test_an_entry_has_one_owner(harness: Harness) -> None:
    await submit(harness)
    await take(harness, worker=WORKER)

    assert [] == list(await take(harness, worker=PEER, reap_idle=VISIBILITY))
    assert [] == list(await take(harness, worker=WORKER))


async def test_an_entry_is_taken_over_once_its_owner_was_idle_for_that_long(harness: Harness) -> None:
    task = await submit(harness)
    await take(harness, worker=WORKER)

    await harness.advance(VISIBILITY - seconds(5))
    assert [] == list(await take(harness, worker=PEER, reap_idle=VISIBILITY))

    await harness.advance(seconds(6))
    (delivery,) = await take(harness, worker=PEER, reap_idle=VISIBILITY)
    assert task.receipt == delivery.receipt
    assert [task.receipt] == list(await harness.backend.broker.owned(QUEUE, worker=PEER))
    assert [] == list(await harness.backend.broker.owned(QUEUE, worker=WORKER))


async def test_nothing_is_taken_over_where_it_is_not_asked_for(harness: Harness) -> None:
    await submit(harness)
    await take(harness, worker=WORKER)
    await harness.advance(VISIBILITY)

    assert [] == list(await take(harness, worker=PEER, reap_idle=None))


async def test_a_taken_over_entry_looks_new(harness: Harness) -> None:
    await submit(harness)
    await take(harness, worker=WORKER)
    await harness.advance(VISIBILITY)
    await take(harness, worker=PEER, reap_idle=VISIBILITY)

    assert [] == list(await take(harness, worker=WORKER, reap_idle=VISIBILITY))


async def test_entries_that_look_new_again_are_not_taken_over(harness: Harness) -> None:
    await submit(harness)
    await take(harness, worker=WORKER)
    await harness.advance(VISIBILITY)
    await harness.rewind()

    assert [] == list(await take(harness, worker=PEER, reap_idle=VISIBILITY))


async def test_a_stale_entry_is_found_behind_300_live_ones(harness: Harness) -> None:
    for _ in range(300):
        await submit(harness)
    await take(harness, worker=WORKER, limit=300)
    lost = await submit(harness)
    await take(harness, worker=PEER)
    await harness.advance(VISIBILITY)
    assert 300 == len(await take(harness, worker=WORKER, limit=300, reap_idle=VISIBILITY))

    (found,) = await take(harness, worker=WORKER, limit=2, reap_idle=VISIBILITY)

    assert lost.receipt == found.receipt


async def test_a_paused_queue_gives_nothing(harness: Harness) -> None:
    held, stale = await submit(harness), await submit(harness, priority=4)
    await take(harness, worker=WORKER)
    await submit(harness)
    await harness.advance(VISIBILITY)
    await harness.backend.queues.pause(QUEUE, audit=an_audit_entry(), event=an_event())
    assert held.receipt is not None
    assert stale.receipt is not None

    fetched = await harness.backend.broker.fetch(
        QUEUE, worker=WORKER, limit=9, reap_idle=VISIBILITY, held=[held.receipt]
    )

    assert (True, []) == (fetched.paused, list(fetched.deliveries))
    assert 2 == (await harness.backend.queues.stats(QUEUE)).pending


async def test_a_pause_of_another_queue_is_none_of_this_ones(harness: Harness) -> None:
    await harness.backend.queues.pause(OTHER, audit=an_audit_entry(), event=an_event())
    await submit(harness)

    assert 1 == len(await take(harness))


async def test_fetch_takes_from_its_queue_only(harness: Harness) -> None:
    await submit(harness, queue=OTHER)

    assert [] == list(await take(harness, queue=QUEUE))


async def test_a_queue_whose_groups_are_lost_is_repaired(harness: Harness) -> None:
    running = await run(harness, priority=3)
    waiting = await submit(harness, priority=8)
    await harness.lose_groups(QUEUE)

    found = {one.receipt for one in await take(harness, worker=PEER)}

    assert {running.receipt, waiting.receipt} == found
    assert [waiting.receipt, running.receipt] == list(await harness.backend.broker.owned(QUEUE, worker=PEER))


async def test_a_priority_that_cannot_be_read_is_named_and_hides_no_other(harness: Harness) -> None:
    high, low = await submit(harness, priority=9), await submit(harness, priority=1)
    await harness.spoil(QUEUE, priority=4)

    fetched = await harness.backend.broker.fetch(QUEUE, worker=WORKER, limit=9, reap_idle=VISIBILITY)

    assert [high.receipt, low.receipt] == [one.receipt for one in fetched.deliveries]
    assert 1 == len(fetched.faults)
    assert "p4" in fetched.faults[0]


async def test_a_record_that_cannot_be_read_makes_only_its_own_entry_unreadable(harness: Harness) -> None:
    first, garbled, last = [await submit(harness, priority=4) for _ in range(3)]
    low = await submit(harness, priority=1)
    await harness.garble(garbled.task_id)

    fetched = await harness.backend.broker.fetch(QUEUE, worker=WORKER, limit=9, reap_idle=VISIBILITY)

    assert [one.receipt for one in (first, last, low)] == [one.receipt for one in fetched.deliveries]
    assert [garbled.receipt] == [one.receipt for one in fetched.unreadable]
    assert fetched.unreadable[0].reason
    assert [] == list(fetched.faults)
    assert garbled.receipt in await harness.backend.broker.owned(QUEUE, worker=WORKER)


async def test_an_unreadable_entry_counts_toward_the_limit_and_comes_round_when_it_was_idle(harness: Harness) -> None:
    garbled, low = await submit(harness, priority=4), await submit(harness, priority=1)
    await harness.garble(garbled.task_id)
    broker = harness.backend.broker

    first = await broker.fetch(QUEUE, worker=WORKER, limit=1, reap_idle=VISIBILITY)
    second = await broker.fetch(QUEUE, worker=PEER, limit=1, reap_idle=VISIBILITY)
    await harness.advance(VISIBILITY)
    third = await broker.fetch(QUEUE, worker=PEER, limit=1, reap_idle=VISIBILITY)

    assert ([], [garbled.receipt]) == (list(first.deliveries), [one.receipt for one in first.unreadable])
    assert ([low.receipt], []) == ([one.receipt for one in second.deliveries], list(second.unreadable))
    assert ([], [garbled.receipt]) == (list(third.deliveries), [one.receipt for one in third.unreadable])


async def test_an_unreadable_entry_that_the_worker_holds_is_named_too(harness: Harness) -> None:
    garbled = await submit(harness, priority=4)
    await harness.garble(garbled.task_id)
    await take(harness, limit=0)
    woken = await harness.backend.broker.wait(QUEUE, worker=WORKER, timeout=seconds(1))

    fetched = await harness.backend.broker.fetch(QUEUE, worker=WORKER, limit=1, reap_idle=None, held=woken)

    assert [garbled.receipt] == list(woken) == [one.receipt for one in fetched.unreadable]


async def test_what_a_fetch_took_whose_reply_was_lost_is_owned(harness: Harness) -> None:
    high, low = await submit(harness, priority=9), await submit(harness, priority=1)
    await harness.backend.queues.register(QUEUE)
    await harness.lose_reply()

    with pytest.raises(OutcomeUnknown):
        await take(harness)

    assert [high.receipt, low.receipt] == list(await harness.backend.broker.owned(QUEUE, worker=WORKER))
