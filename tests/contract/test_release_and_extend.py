"""WorkQueue.release and extend: one test for each sentence of its docstrings."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from dtq.application.reaping import HANDED_BACK
from dtq.domain.task import LeaseToken
from dtq.ports.broker import HeldLease, LeaseReport
from tests.contract.harness import Harness
from tests.contract.steps import (
    PEER,
    VISIBILITY,
    cancel,
    decide_start,
    end,
    held_lease,
    make,
    reap_one,
    run,
    stored,
    submit,
    take,
)
from tests.factories import QUEUE, WORKER, a_receipt, a_success


async def test_what_is_handed_back_is_taken_by_the_next_reaping_fetch(harness: Harness) -> None:
    task = await submit(harness)
    await take(harness, worker=WORKER)
    assert task.receipt is not None

    assert 1 == await harness.backend.broker.release([task.receipt], worker=WORKER)

    assert [] == list(await take(harness, worker=PEER, reap_idle=None))
    (delivery,) = await take(harness, worker=PEER, reap_idle=timedelta(hours=1))
    assert task.receipt == delivery.receipt


@pytest.mark.parametrize("idle", [HANDED_BACK, timedelta(days=1)], ids=["in an outage", "longest visibility timeout"])
async def test_what_is_handed_back_is_taken_whatever_silence_a_worker_waits_for(
    harness: Harness, idle: timedelta
) -> None:
    task = await submit(harness)
    await take(harness, worker=WORKER)
    assert task.receipt is not None
    await harness.backend.broker.release([task.receipt], worker=WORKER)

    assert [task.receipt] == [one.receipt for one in await take(harness, worker=PEER, reap_idle=idle)]


async def test_what_is_handed_back_is_taken_oldest_first(harness: Harness) -> None:
    tasks = [await submit(harness) for _ in range(5)]
    await take(harness, worker=WORKER)
    receipts = [task.receipt for task in reversed(tasks) if task.receipt is not None]
    for receipt in receipts:
        await harness.backend.broker.release([receipt], worker=WORKER)

    first = await take(harness, worker=PEER, reap_idle=VISIBILITY, limit=2)
    second = await take(harness, worker=PEER, reap_idle=VISIBILITY, limit=9)

    assert [task.receipt for task in tasks] == [one.receipt for one in [*first, *second]]


async def test_handing_back_counts_what_was_handed_back(harness: Harness) -> None:
    tasks = [await submit(harness, priority=number) for number in range(3)]
    await take(harness, worker=WORKER)
    receipts = [task.receipt for task in tasks if task.receipt is not None]

    assert 3 == await harness.backend.broker.release([*receipts, a_receipt()], worker=WORKER)
    assert 0 == await harness.backend.broker.release([], worker=WORKER)


async def test_handing_back_counts_no_attempt(harness: Harness) -> None:
    task = await submit(harness)
    await take(harness, worker=WORKER)
    assert task.receipt is not None
    await harness.backend.broker.release([task.receipt], worker=WORKER)

    assert task == await stored(harness, task.task_id)


async def test_an_extended_entry_is_not_reaped(harness: Harness) -> None:
    task = await run(harness)
    await harness.advance(VISIBILITY)

    reports = await harness.backend.broker.extend([held_lease(task)], worker=WORKER)

    assert [LeaseReport(lease=held_lease(task).lease, kept=True)] == list(reports)
    assert [] == list(await take(harness, worker=PEER, reap_idle=VISIBILITY))


async def test_extending_wins_an_entry_back_that_was_reaped_and_not_started(harness: Harness) -> None:
    task = await run(harness, worker=WORKER)
    await reap_one(harness, task, worker=PEER)

    (report,) = await harness.backend.broker.extend([held_lease(task)], worker=WORKER)

    assert report.kept
    assert [task.receipt] == list(await harness.backend.broker.owned(QUEUE, worker=WORKER))
    assert [] == list(await harness.backend.broker.owned(QUEUE, worker=PEER))


async def test_a_lease_that_was_started_over_is_lost_and_nothing_changes(harness: Harness) -> None:
    task = await run(harness, worker=WORKER)
    await make(harness, decide_start(harness, await reap_one(harness, task, worker=PEER), worker=PEER))

    (report,) = await harness.backend.broker.extend([held_lease(task)], worker=WORKER)

    assert not report.kept
    assert [task.receipt] == list(await harness.backend.broker.owned(QUEUE, worker=PEER))
    await harness.advance(VISIBILITY)
    assert 1 == len(await take(harness, worker=WORKER, reap_idle=VISIBILITY))


async def test_a_lease_whose_entry_is_gone_is_kept_and_nothing_is_owned(harness: Harness) -> None:
    task = await run(harness)
    await harness.orphan(task.task_id)

    (report,) = await harness.backend.broker.extend([held_lease(task)], worker=WORKER)

    assert report.kept
    assert [] == list(await harness.backend.broker.owned(QUEUE, worker=WORKER))


@pytest.mark.parametrize("gone", ["ended", "evicted", "never"])
async def test_a_lease_of_a_task_that_is_no_longer_running_is_lost(harness: Harness, gone: str) -> None:
    task = await run(harness)
    lease = held_lease(task)
    if gone == "ended":
        await end(harness, task, a_success())
    elif gone == "evicted":
        await harness.evict(task.task_id)
    else:
        lease = replace(lease, lease=LeaseToken("never"))

    assert [LeaseReport(lease=lease.lease, kept=False)] == list(
        await harness.backend.broker.extend([lease], worker=WORKER)
    )


async def test_extending_reports_one_by_one_in_order(harness: Harness) -> None:
    first, second = await run(harness), await run(harness, priority=9)
    lost = HeldLease(task_id=first.task_id, receipt=a_receipt(), lease=LeaseToken("lost"))

    reports = await harness.backend.broker.extend([held_lease(first), lost, held_lease(second)], worker=WORKER)

    assert [(first.lease, True), ("lost", False), (second.lease, True)] == [(one.lease, one.kept) for one in reports]


async def test_extending_tells_of_a_cancel_request(harness: Harness) -> None:
    task = await run(harness)
    await cancel(harness, task)

    (report,) = await harness.backend.broker.extend([held_lease(task)], worker=WORKER)

    assert (True, True) == (report.kept, report.cancel_requested)
