"""Rows 13 to 25 of the state table: what a delivered entry becomes."""

import pytest

from dtq.domain.change import Change
from dtq.domain.decision import Acknowledge, Drop, DropReason
from dtq.domain.entry import rebuild
from dtq.domain.events import EventType
from dtq.domain.idempotency import RecordState
from dtq.domain.outcome import WORKER_LOST
from dtq.domain.status import Place, TaskStatus
from dtq.domain.task import LeaseToken
from dtq.ports.answers import Refused
from tests.contract.harness import Harness
from tests.contract.recording import recording
from tests.contract.standing import KEY, assert_stands
from tests.contract.steps import (
    NO_DEAD_LETTERS,
    PEER,
    VISIBILITY,
    bring_to,
    cancel,
    commit,
    decide_start,
    key_record,
    make,
    now,
    only,
    promote,
    reap_one,
    run,
    seconds,
    submit,
    take,
    take_one,
)
from tests.factories import QUEUE, WORKER, a_token, an_audit_entry, an_event

E, S = EventType, TaskStatus
TERMINAL = [status for status in S if status.name in {"SUCCEEDED", "FAILED", "DEAD_LETTERED", "CANCELLED", "EXPIRED"}]


async def test_row_13_a_fresh_entry_gets_an_owner(harness: Harness) -> None:
    task = await submit(harness, idempotency_key=KEY)

    await take_one(harness, task)

    await assert_stands(harness, task.task_id, S.QUEUED, Place.HELD)


async def test_row_14_a_reaped_entry_gets_another_owner_and_its_task_stays(harness: Harness) -> None:
    task = await run(harness, idempotency_key=KEY)

    delivery = await reap_one(harness, task)

    assert task == delivery.task
    assert [task.receipt] == list(await harness.backend.broker.owned(QUEUE, worker=PEER))
    await assert_stands(harness, task.task_id, S.RUNNING, Place.HELD)


async def test_row_15_who_lost_the_entry_drops_it(harness: Harness) -> None:
    task = await submit(harness, idempotency_key=KEY)
    stalled = await take_one(harness, task, worker=WORKER)
    await reap_one(harness, task, worker=PEER)

    change = decide_start(harness, stalled, worker=WORKER)
    assert isinstance(change, Change)

    assert isinstance(await commit(harness, change), Refused)
    await assert_stands(harness, task.task_id, S.QUEUED, Place.HELD)


async def test_row_16_a_task_whose_record_is_gone_is_rebuilt_and_run(harness: Harness) -> None:
    task = await submit(harness, payload='{"kept": {}}', max_attempts=7, priority=2)
    await harness.evict(task.task_id)
    delivery = await take_one(harness, task)
    rebuilt = rebuild(delivery.fields, receipt=delivery.receipt)

    async with recording(harness) as record:
        started = await make(harness, decide_start(harness, delivery, task=rebuilt))

        assert [E.TASK_STARTED] == await record.types(task.task_id)
    await assert_stands(harness, task.task_id, S.RUNNING, Place.HELD)
    assert (1, '{"kept": {}}', 7, 2) == (started.attempt, started.payload, started.max_attempts, started.priority)


async def test_row_16_a_rebuilt_task_goes_on_with_its_attempts(harness: Harness) -> None:
    task = await promote(harness, await bring_to(harness, S.RETRYING))
    await harness.evict(task.task_id)
    delivery = await take_one(harness, task)

    rebuilt = rebuild(delivery.fields, receipt=delivery.receipt)
    started = await make(harness, decide_start(harness, delivery, task=rebuilt))

    assert 2 == started.attempt


async def test_row_16_a_rebuilt_task_binds_its_lost_key_again(harness: Harness) -> None:
    task = await submit(harness)
    await harness.evict(task.task_id)
    delivery = await take_one(harness, task)
    fields = {**delivery.fields, "idempotency_key": KEY}

    await make(harness, decide_start(harness, delivery, task=rebuild(fields, receipt=delivery.receipt)))

    record = await key_record(harness, KEY)
    assert record is not None
    assert (task.task_id, RecordState.PROCESSING) == (record.task_id, record.state)


@pytest.mark.parametrize("status", TERMINAL)
async def test_row_17_an_entry_of_an_ended_task_is_acknowledged(harness: Harness, status: TaskStatus) -> None:
    task = await bring_to(harness, status, idempotency_key=KEY)
    await harness.duplicate(task.task_id)
    (delivery,) = await take(harness)

    decision = decide_start(harness, delivery)

    assert Acknowledge(absorbed=False) == decision
    await harness.backend.broker.acknowledge(delivery, worker=WORKER, absorbed=False, token=a_token())
    place = Place.DEAD if status is S.DEAD_LETTERED else Place.NOWHERE
    await assert_stands(harness, task.task_id, status, place)


@pytest.mark.parametrize("status", [S.QUEUED, S.RUNNING, S.PENDING, S.RETRYING])
async def test_row_18_a_second_entry_of_a_live_task_is_absorbed(harness: Harness, status: TaskStatus) -> None:
    task = await bring_to(harness, status, idempotency_key=KEY)
    before = await harness.census()
    duplicate = await harness.duplicate(task.task_id)
    deliveries = await take(harness)
    delivery = only(one for one in deliveries if one.receipt == duplicate)

    decision = decide_start(harness, delivery)

    assert Acknowledge(absorbed=True) == decision
    async with recording(harness) as record:
        await harness.backend.broker.acknowledge(delivery, worker=WORKER, absorbed=True, token=a_token())
        assert [E.DUPLICATE_ABSORBED] == await record.types(task.task_id)
    place = only(place for place, task_ids in before.items() if task_ids)
    await assert_stands(harness, task.task_id, status, Place.HELD if place is Place.READY else place)


async def test_row_19_a_start_whose_reply_was_lost_runs_under_its_own_lease(harness: Harness) -> None:
    delivery = await take_one(harness, await submit(harness))
    lease = LeaseToken("mine")
    started = await make(harness, decide_start(harness, delivery, lease=lease))

    assert Drop(DropReason.ALREADY_MINE) == decide_start(harness, delivery, task=started, lease=lease)
    assert 1 == started.attempt


async def test_row_20_a_redelivered_task_whose_cancel_is_requested_is_cancelled(harness: Harness) -> None:
    task = await cancel(harness, await run(harness, idempotency_key=KEY))
    delivery = await reap_one(harness, task)

    async with recording(harness) as record:
        ended = await make(harness, decide_start(harness, delivery, worker=PEER))

        assert [E.TASK_CANCELLED] == await record.types(task.task_id)
    await assert_stands(harness, task.task_id, S.CANCELLED, Place.NOWHERE)
    assert (1, 1) == (ended.attempt, len(ended.history))


async def test_row_21_a_task_past_its_time_to_live_expires_at_its_start(harness: Harness) -> None:
    task = await submit(harness, idempotency_key=KEY, ttl=seconds(10))
    await harness.advance(seconds(10))
    delivery = await take_one(harness, task)

    async with recording(harness) as record:
        ended = await make(harness, decide_start(harness, delivery))

        assert [E.TASK_EXPIRED] == await record.types(task.task_id)
    await assert_stands(harness, task.task_id, S.EXPIRED, Place.NOWHERE)
    assert 0 == ended.attempt


@pytest.mark.parametrize("dead_letters", [True, False])
async def test_row_22_a_worker_lost_at_the_last_attempt_ends_the_task(harness: Harness, *, dead_letters: bool) -> None:
    task = await run(harness, idempotency_key=KEY, max_attempts=1)
    delivery = await reap_one(harness, task)

    change = decide_start(harness, delivery, worker=PEER)
    if not dead_letters:
        change = decide_start(harness, delivery, worker=PEER, policy=NO_DEAD_LETTERS)
    async with recording(harness) as record:
        ended = await make(harness, change)

        assert [E.TASK_DEAD_LETTERED if dead_letters else E.TASK_FAILED] == await record.types(task.task_id)
    status, place = (S.DEAD_LETTERED, Place.DEAD) if dead_letters else (S.FAILED, Place.NOWHERE)
    await assert_stands(harness, task.task_id, status, place)
    assert ended.failure is not None
    assert (1, WORKER_LOST) == (ended.attempt, ended.failure.error_class)


async def test_row_23_an_entry_of_a_paused_queue_is_handed_back(harness: Harness) -> None:
    task = await submit(harness, idempotency_key=KEY)
    delivery = await take_one(harness, task)
    await harness.backend.queues.pause(QUEUE, audit=an_audit_entry(), event=an_event())
    change = decide_start(harness, delivery)
    assert isinstance(change, Change)

    assert isinstance(await commit(harness, change), Refused)
    assert 1 == await harness.backend.broker.release([delivery.receipt], worker=WORKER)

    await harness.backend.queues.resume(QUEUE, audit=an_audit_entry(), event=an_event())
    assert 1 == len(await take(harness, worker=PEER, reap_idle=VISIBILITY))
    await assert_stands(harness, task.task_id, S.QUEUED, Place.HELD)


async def test_row_24_a_start_counts_an_attempt(harness: Harness) -> None:
    delivery = await take_one(harness, await submit(harness, idempotency_key=KEY))

    async with recording(harness) as record:
        task = await make(harness, decide_start(harness, delivery, lease=LeaseToken("mine")))
        (event,) = await record.heard()

    await assert_stands(harness, task.task_id, S.RUNNING, Place.HELD)
    assert (1, WORKER, "mine") == (task.attempt, task.worker_id, task.lease)
    assert (E.TASK_STARTED, 1, WORKER, None) == (event.type, event.attempt, event.worker_id, event.metadata)
    assert task.started_at == event.ts <= now(harness)


async def test_row_25_a_redelivery_counts_an_attempt_and_remembers_the_lost_one(harness: Harness) -> None:
    first = await run(harness, idempotency_key=KEY, worker=WORKER)
    delivery = await reap_one(harness, first, worker=PEER)

    async with recording(harness) as record:
        task = await make(harness, decide_start(harness, delivery, worker=PEER))
        (event,) = await record.heard()

    await assert_stands(harness, task.task_id, S.RUNNING, Place.HELD)
    assert (2, PEER, first.entry_id) == (task.attempt, task.worker_id, task.entry_id)
    assert first.lease != task.lease
    (lost,) = task.history
    assert lost.failure is not None
    assert (1, WORKER, WORKER_LOST) == (lost.attempt, lost.worker_id, lost.failure.error_class)
    assert (E.TASK_STARTED, {"redelivered": True}) == (event.type, event.metadata)
