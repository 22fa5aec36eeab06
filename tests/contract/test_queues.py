"""Queues: one test for each sentence of its docstrings."""

import pytest

from dtq.domain.entry import entry_fields
from dtq.domain.events import EventType
from dtq.domain.status import Place, TaskStatus
from dtq.domain.task import QueueName, Receipt
from dtq.ports.queues import QueueStats
from tests.contract.harness import Harness
from tests.contract.recording import recording
from tests.contract.steps import bare, bring_to, cancel, now, run, seconds, stored, submit, take
from tests.factories import QUEUE, WORKER, a_receipt, an_audit_entry, an_event

OTHER = QueueName("other")


async def test_a_registered_queue_is_known(harness: Harness) -> None:
    queues = harness.backend.queues
    await queues.register(OTHER)
    await queues.register(OTHER)

    assert [OTHER] == list(await queues.names())


async def test_registering_disturbs_nothing(harness: Harness) -> None:
    task = await submit(harness)
    scheduled = await submit(harness, delay=seconds(5))
    await take(harness)

    await harness.backend.queues.register(QUEUE)

    assert [task.receipt] == list(await harness.backend.broker.owned(QUEUE, worker=WORKER))
    assert 1 == (await harness.backend.queues.stats(scheduled.queue)).retry_scheduled


async def test_names_are_in_alphabetical_order(harness: Harness) -> None:
    for name in ("b", "a-1", "c", "a"):
        await submit(harness, queue=QueueName(name), delay=seconds(5))

    assert ["a", "a-1", "b", "c"] == list(await harness.backend.queues.names())


async def test_a_task_makes_its_queue_known(harness: Harness) -> None:
    await submit(harness, queue=OTHER)

    assert [OTHER] == list(await harness.backend.queues.names())


async def test_names_that_look_like_other_streams_are_queues_like_any_other(harness: Harness) -> None:
    for name in ("audit", "dead-letter", "schedule", "queues"):
        task = await submit(harness, queue=QueueName(name))
        assert [task] == [one.task for one in await take(harness, queue=QueueName(name))]

    assert [] == list(await harness.backend.audit.recent(limit=9))
    assert [] == list(await harness.backend.dead_letters.recent(limit=9))


async def test_an_unknown_queue_is_empty(harness: Harness) -> None:
    empty = QueueStats(queue=OTHER, depth=0, pending=0, paused=False, retry_scheduled=0)

    assert empty == await harness.backend.queues.stats(OTHER)
    assert [] == list(await harness.backend.queues.names())


async def test_stats_are_exact(harness: Harness) -> None:
    await run(harness, priority=9)
    await submit(harness, priority=1)
    await submit(harness, priority=0)
    await submit(harness, delay=seconds(50))
    await bring_to(harness, TaskStatus.SUCCEEDED, queue=OTHER)
    await harness.backend.queues.pause(QUEUE, audit=an_audit_entry(), event=an_event())

    stats = await harness.backend.queues.stats(QUEUE)

    assert QueueStats(queue=QUEUE, depth=3, pending=1, paused=True, retry_scheduled=1) == stats


async def test_pending_counts_what_is_owned(harness: Harness) -> None:
    for priority in (9, 5, 5, 0):
        await submit(harness, priority=priority)
    await take(harness, limit=3)

    stats = await harness.backend.queues.stats(QUEUE)

    assert (4, 3) == (stats.depth, stats.pending)


@pytest.mark.parametrize("act", ["pause", "resume"])
async def test_an_act_on_a_queue_is_audited_and_told(harness: Harness, act: str) -> None:
    queues = harness.backend.queues
    audit = an_audit_entry(action=f"queue.{act}", queue=QUEUE, ts=now(harness))
    event = an_event(type=EventType.CONFIGURATION_CHANGED, metadata={"queue": QUEUE, "paused": act == "pause"})

    async with recording(harness) as record:
        await (queues.pause if act == "pause" else queues.resume)(QUEUE, audit=audit, event=event)

        assert [event] == await record.heard()
    assert [audit] == list(await harness.backend.audit.recent(limit=9))
    assert (act == "pause") == (await queues.stats(QUEUE)).paused


async def test_pausing_and_resuming_are_repeatable(harness: Harness) -> None:
    queues = harness.backend.queues
    paused = []
    for act in (queues.pause, queues.pause, queues.resume, queues.resume):
        await act(QUEUE, audit=an_audit_entry(), event=an_event())
        paused.append((await queues.stats(QUEUE)).paused)

    assert [True, True, False, False] == paused


async def test_a_queue_that_is_paused_is_known(harness: Harness) -> None:
    await harness.backend.queues.pause(QUEUE, audit=an_audit_entry(), event=an_event())

    assert [QUEUE] == list(await harness.backend.queues.names())


async def test_a_pause_lasts_until_it_is_ended(harness: Harness) -> None:
    await harness.backend.queues.pause(QUEUE, audit=an_audit_entry(), event=an_event())

    await harness.advance(seconds(90 * 86_400))

    assert (await harness.backend.queues.stats(QUEUE)).paused


async def test_a_paused_queue_takes_new_tasks(harness: Harness) -> None:
    await harness.backend.queues.pause(QUEUE, audit=an_audit_entry(), event=an_event())

    assert TaskStatus.QUEUED is (await submit(harness)).status


async def test_what_no_worker_has_read_is_listed_oldest_of_the_highest_priority_first(harness: Harness) -> None:
    await submit(harness, priority=9)
    await take(harness)
    low, first, second = [await submit(harness, priority=priority) for priority in (0, 5, 5)]

    found = await harness.backend.queues.undelivered(QUEUE, limit=9)

    assert [bare(first), bare(second), bare(low)] == list(found)


async def test_undelivered_lists_each_entry_once_however_many_there_are(harness: Harness) -> None:
    tasks = [await submit(harness, priority=5) for _ in range(40)]

    assert [bare(task) for task in tasks] == list(await harness.backend.queues.undelivered(QUEUE, limit=50))


async def test_undelivered_lists_at_most_the_limit(harness: Harness) -> None:
    tasks = [await submit(harness, priority=priority) for priority in (9, 9, 5)]

    assert [bare(task) for task in tasks[:2]] == list(await harness.backend.queues.undelivered(QUEUE, limit=2))


async def test_what_is_no_live_tasks_own_entry_is_listed_by_its_receipt(harness: Harness) -> None:
    task = await submit(harness, priority=9)
    duplicate = await harness.duplicate(task.task_id)
    foreign = await harness.forge(QUEUE, priority=3, fields={"what": "is this"})
    evicted = await submit(harness, priority=2)
    await harness.evict(evicted.task_id)
    ended = await bring_to(harness, TaskStatus.CANCELLED, priority=1)
    left = await harness.forge(QUEUE, priority=1, fields=entry_fields(ended))

    found = await harness.backend.queues.undelivered(QUEUE, limit=9)

    assert [bare(task), duplicate, foreign, evicted.receipt, left] == list(found)


async def test_undelivered_reads_one_queue(harness: Harness) -> None:
    await submit(harness, queue=OTHER)

    assert [] == list(await harness.backend.queues.undelivered(QUEUE, limit=9))


async def test_what_is_no_live_tasks_own_is_dropped(harness: Harness) -> None:
    task = await submit(harness)
    duplicate = await harness.duplicate(task.task_id)
    foreign = await harness.forge(QUEUE, priority=3, fields={"what": "is this"})
    evicted = await submit(harness, priority=2)
    await harness.evict(evicted.task_id)
    receipts = [one for one in (duplicate, foreign, evicted.receipt, a_receipt()) if one is not None]

    assert 3 == await harness.backend.queues.drop(receipts)

    assert 1 == (await harness.backend.queues.stats(QUEUE)).depth
    assert [bare(task)] == list(await harness.backend.queues.undelivered(QUEUE, limit=9))


async def test_a_live_tasks_own_entry_is_not_dropped(harness: Harness) -> None:
    task = await submit(harness)
    assert task.receipt is not None

    assert 0 == await harness.backend.queues.drop([task.receipt])
    assert {task.task_id} == (await harness.census())[Place.READY]


async def test_what_a_worker_has_read_is_not_dropped(harness: Harness) -> None:
    task = await submit(harness)
    duplicate = await harness.duplicate(task.task_id)
    await take(harness)

    assert 0 == await harness.backend.queues.drop([duplicate])
    assert 2 == (await harness.backend.queues.stats(QUEUE)).pending


async def test_dropping_changes_no_task(harness: Harness) -> None:
    task = await submit(harness)
    duplicate = await harness.duplicate(task.task_id)

    await harness.backend.queues.drop([duplicate])

    assert task == await stored(harness, task.task_id)


async def test_dropping_takes_receipts_of_several_queues(harness: Harness) -> None:
    receipts: list[Receipt] = []
    for queue in (QUEUE, OTHER):
        task = await submit(harness, queue=queue)
        receipts.append(await harness.duplicate(task.task_id))

    assert 2 == await harness.backend.queues.drop(receipts)


async def test_a_cancelled_task_leaves_its_queue(harness: Harness) -> None:
    await cancel(harness, await submit(harness))

    assert 0 == (await harness.backend.queues.stats(QUEUE)).depth
