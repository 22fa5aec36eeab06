"""Upkeep: one test for each sentence of its docstrings."""

from datetime import datetime, timedelta

import pytest

from dtq.domain.retention import Retention, record_lifetime, task_lifetime
from dtq.domain.status import TaskStatus
from dtq.domain.task import QueueName, WorkerId
from dtq.ports.backend import BackendOptions
from tests.contract.harness import Harness, OpenHarness
from tests.contract.steps import (
    PEER,
    VISIBILITY,
    all_strays,
    bare,
    bring_to,
    cancel,
    claim,
    key_record,
    now,
    run,
    seconds,
    stored,
    submit,
    take,
)
from tests.factories import QUEUE, WORKER, an_audit_entry, an_event

DAY = timedelta(days=1)
ALIVE = [TaskStatus.PENDING, TaskStatus.QUEUED, TaskStatus.RUNNING, TaskStatus.RETRYING]
OTHER = QueueName("other")


@pytest.mark.parametrize("status", ALIVE)
async def test_a_live_task_in_no_place_is_a_stray(harness: Harness, status: TaskStatus) -> None:
    task = await bring_to(harness, status)
    await harness.orphan(task.task_id)

    assert [bare(task)] == await all_strays(harness)


@pytest.mark.parametrize("status", TaskStatus)
async def test_a_task_that_ended_or_has_its_place_is_no_stray(harness: Harness, status: TaskStatus) -> None:
    await bring_to(harness, status)

    assert [] == await all_strays(harness)


async def test_a_task_on_loan_is_no_stray(harness: Harness) -> None:
    await claim(harness, await bring_to(harness, TaskStatus.PENDING))

    assert [] == await all_strays(harness)


async def test_a_dead_letter_that_is_gone_makes_no_stray(harness: Harness) -> None:
    task = await bring_to(harness, TaskStatus.DEAD_LETTERED)
    await harness.orphan(task.task_id)

    assert [] == await all_strays(harness)


async def test_the_cursor_leads_past_every_task(harness: Harness) -> None:
    tasks = [await submit(harness) for _ in range(25)]
    for task in tasks[::5]:
        await harness.orphan(task.task_id)

    found = await all_strays(harness, limit=2)

    assert {task.task_id for task in tasks[::5]} == {task.task_id for task in found}


async def _keep_alive(harness: Harness, *, waiting_since: datetime | None = None, limit: int = 9) -> list[int]:
    """Go round one queue to the end, and say how many tasks each call renewed."""
    since, cursor, counts = waiting_since or now(harness), "", list[int]()
    while cursor or not counts:
        keep_alive = harness.backend.upkeep.keep_alive
        cursor, renewed = await keep_alive(QUEUE, cursor=cursor, waiting_since=since, limit=limit)
        counts.append(renewed)
    return counts


async def test_keep_alive_renews_what_has_waited_for_long(harness: Harness) -> None:
    task = await submit(harness, idempotency_key="k")
    retention = harness.options.retention
    await harness.advance(retention.idempotency - timedelta(hours=1))

    assert [1] == await _keep_alive(harness, waiting_since=now(harness) - seconds(60))

    await harness.advance(retention.idempotency - timedelta(minutes=1))
    record = await key_record(harness, "k")
    assert record is not None
    assert task.task_id == record.task_id
    await harness.advance(retention.task - retention.idempotency)
    assert bare(task) == bare(await stored(harness, task.task_id))


async def test_keep_alive_gives_the_lifetimes_of_a_change(open_harness: OpenHarness) -> None:
    retention = Retention(task=seconds(2), result=seconds(1), idempotency=seconds(1))
    async with open_harness(options=BackendOptions(retention=retention)) as harness:
        task = await run(harness, idempotency_key="k", timeout=timedelta(hours=1))
        await harness.advance(timedelta(minutes=10))

        assert [1] == await _keep_alive(harness)

        at = now(harness)
        kept_key = record_lifetime(task, at=at, retention=retention)
        await harness.advance(kept_key - seconds(5))
        assert await key_record(harness, "k") is not None
        await harness.advance(seconds(10))
        assert await key_record(harness, "k") is None
        await harness.advance(task_lifetime(task, at=at, retention=retention) - kept_key - seconds(10))
        assert bare(task) == bare(await stored(harness, task.task_id))
        await harness.advance(seconds(10))
        assert await harness.backend.broker.load(task.task_id) is None


async def test_keep_alive_leaves_what_is_younger(harness: Harness) -> None:
    before = now(harness) - seconds(60)
    await submit(harness)

    assert [0] == await _keep_alive(harness, waiting_since=before)


async def test_keep_alive_gets_to_every_entry_limit_by_limit(harness: Harness) -> None:
    for priority in (9, 9, 5, 5, 5, 0):
        await submit(harness, priority=priority)
    await harness.advance(DAY)

    counts = await _keep_alive(harness, limit=2)

    assert [2, 2, 2] == counts[:3]
    assert 6 == sum(counts)


async def test_keep_alive_goes_on_behind_entries_that_went(harness: Harness) -> None:
    tasks = [await submit(harness) for _ in range(4)]
    await harness.advance(DAY)
    keep_alive, since = harness.backend.upkeep.keep_alive, now(harness)
    cursor, _ = await keep_alive(QUEUE, cursor="", waiting_since=since, limit=2)

    for task in tasks[:3]:
        await cancel(harness, task)

    assert ("", 1) == await keep_alive(QUEUE, cursor=cursor, waiting_since=since, limit=2)


async def test_keep_alive_of_a_queue_that_is_gone_is_over_at_once(harness: Harness) -> None:
    assert [0] == await _keep_alive(harness)


async def test_keep_alive_renews_one_queue(harness: Harness) -> None:
    await submit(harness, queue=OTHER)
    await harness.advance(DAY)

    assert [0] == await _keep_alive(harness)


async def test_keep_alive_leaves_a_record_of_another_task_alone(harness: Harness) -> None:
    lifetime = harness.options.retention.idempotency
    await submit(harness, idempotency_key="k")
    await harness.advance(lifetime)
    other = await submit(harness, idempotency_key="k", delay=seconds(10))
    await harness.advance(lifetime - timedelta(minutes=1))

    await _keep_alive(harness, waiting_since=now(harness) - seconds(5))

    record = await key_record(harness, "k")
    assert record is not None
    assert other.task_id == record.task_id
    await harness.advance(timedelta(minutes=2))
    assert await key_record(harness, "k") is None


async def test_keep_alive_makes_no_record(harness: Harness) -> None:
    task = await submit(harness, idempotency_key="k")
    await harness.advance(2 * DAY)
    gone = await submit(harness)
    await harness.evict(gone.task_id)

    await _keep_alive(harness)

    assert await key_record(harness, "k") is None
    assert await harness.backend.broker.load(gone.task_id) is None
    assert bare(task) == bare(await stored(harness, task.task_id))


async def _read_and_lose(harness: Harness, *, worker: WorkerId, priority: int = 5) -> None:
    """Make a worker known to a queue, without anything that it owns."""
    task = await submit(harness, priority=priority)
    await take(harness, worker=worker)
    await cancel(harness, task)


async def test_consumers_that_own_nothing_are_removed(harness: Harness) -> None:
    await submit(harness)
    await take(harness, worker=WORKER)
    await _read_and_lose(harness, worker=PEER)
    upkeep = harness.backend.upkeep

    assert 1 == await upkeep.drop_consumers(QUEUE, alive=())
    assert 0 == await upkeep.drop_consumers(QUEUE, alive=())


async def test_consumers_that_own_something_are_kept_and_lose_nothing(harness: Harness) -> None:
    task = await submit(harness)
    await take(harness, worker=WORKER)

    await harness.backend.upkeep.drop_consumers(QUEUE, alive=())

    assert [task.receipt] == list(await harness.backend.broker.owned(QUEUE, worker=WORKER))
    await harness.advance(VISIBILITY)
    assert 1 == len(await take(harness, worker=PEER, reap_idle=VISIBILITY))


@pytest.mark.parametrize("emptied", [9, 0])
async def test_consumers_that_own_something_of_one_priority_are_kept_in_all(harness: Harness, emptied: int) -> None:
    await _read_and_lose(harness, worker=WORKER, priority=emptied)
    task = await run(harness, worker=WORKER)

    assert 0 == await harness.backend.upkeep.drop_consumers(QUEUE, alive=())
    assert [task.receipt] == list(await harness.backend.broker.owned(QUEUE, worker=WORKER))


async def test_consumers_that_are_alive_are_kept(harness: Harness) -> None:
    await _read_and_lose(harness, worker=WORKER)
    await _read_and_lose(harness, worker=PEER)

    assert 1 == await harness.backend.upkeep.drop_consumers(QUEUE, alive=[WORKER])


async def test_a_removed_consumer_can_come_back(harness: Harness) -> None:
    await take(harness, worker=WORKER)
    await harness.backend.upkeep.drop_consumers(QUEUE, alive=())
    await submit(harness)

    assert 1 == len(await take(harness, worker=WORKER))


async def test_an_idle_queue_is_forgotten(harness: Harness) -> None:
    await bring_to(harness, TaskStatus.SUCCEEDED)

    assert await harness.backend.upkeep.retire(QUEUE)
    assert [] == list(await harness.backend.queues.names())
    assert not await harness.backend.upkeep.retire(QUEUE)


@pytest.mark.parametrize("status", ALIVE)
async def test_a_queue_with_work_is_not_forgotten(harness: Harness, status: TaskStatus) -> None:
    task = await bring_to(harness, status)

    assert not await harness.backend.upkeep.retire(QUEUE)
    assert [QUEUE] == list(await harness.backend.queues.names())
    assert not task.is_terminal


async def test_a_paused_queue_is_not_forgotten(harness: Harness) -> None:
    await harness.backend.queues.register(QUEUE)
    await harness.backend.queues.pause(QUEUE, audit=an_audit_entry(), event=an_event())

    assert not await harness.backend.upkeep.retire(QUEUE)
    assert (await harness.backend.queues.stats(QUEUE)).paused


async def test_a_forgotten_queue_can_come_back(harness: Harness) -> None:
    await bring_to(harness, TaskStatus.SUCCEEDED)
    await harness.backend.upkeep.retire(QUEUE)

    task = await submit(harness)

    assert [QUEUE] == list(await harness.backend.queues.names())
    assert [task.receipt] == [one.receipt for one in await take(harness)]


async def test_cancel_marks_that_no_entry_can_need_are_removed(harness: Harness) -> None:
    for _ in range(3):
        await cancel(harness, await submit(harness))
    await harness.advance(DAY)

    counts = [await harness.backend.upkeep.drop_marks(limit=2) for _ in range(3)]

    assert [2, 1, 0] == counts


async def test_a_cancel_mark_stays_while_an_entry_may_need_it(harness: Harness) -> None:
    task = await submit(harness)
    await harness.duplicate(task.task_id)
    await cancel(harness, task)

    assert 0 == await harness.backend.upkeep.drop_marks(limit=9)
