"""Rows 37 to 54 of the state table: cancel, dead letters, purge, pause, and what time takes away."""

import pytest

from dtq.domain import lifecycle
from dtq.domain.change import Change, Requirement
from dtq.domain.decision import Drop, DropReason
from dtq.domain.entry import rebuild
from dtq.domain.events import EventType
from dtq.domain.idempotency import RecordState
from dtq.domain.status import Place, TaskStatus
from dtq.domain.task import NO_VERSION, Task
from dtq.ports.answers import Applied, Conflict, Refused
from dtq.ports.backend import BackendOptions
from tests.contract.harness import Harness, OpenHarness
from tests.contract.recording import recording
from tests.contract.standing import KEY, assert_stands
from tests.contract.steps import (
    bare,
    bring_to,
    cancel,
    claim_due,
    commit,
    create,
    decide_start,
    end,
    key_record,
    make,
    now,
    run,
    seconds,
    stored,
    submit,
    take,
    take_one,
)
from tests.factories import OPERATOR, QUEUE, WORKER, a_success, a_token, an_admission, an_audit_entry, an_event

E, S = EventType, TaskStatus
TERMINAL = [status for status in S if status.name in {"SUCCEEDED", "FAILED", "DEAD_LETTERED", "CANCELLED", "EXPIRED"}]


async def _actions(harness: Harness) -> list[str]:
    return [entry.action for entry in await harness.backend.audit.recent(limit=9)][::-1]


@pytest.mark.parametrize("status", [S.PENDING, S.RETRYING])
async def test_rows_37_and_38_a_task_that_waits_for_its_time_is_cancelled(harness: Harness, status: TaskStatus) -> None:
    task = await bring_to(harness, status, idempotency_key=KEY)

    async with recording(harness) as record:
        await cancel(harness, task)

        assert [E.TASK_CANCELLED] == await record.types(task.task_id)
    await assert_stands(harness, task.task_id, S.CANCELLED, Place.NOWHERE)
    assert 0 == (await harness.backend.queues.stats(QUEUE)).retry_scheduled
    assert ["task.cancel"] == await _actions(harness)


@pytest.mark.parametrize("delivered", [False, True])
async def test_row_39_a_queued_task_is_cancelled_whoever_has_read_it(harness: Harness, *, delivered: bool) -> None:
    task = await submit(harness, idempotency_key=KEY)
    deliveries = await take(harness) if delivered else []

    async with recording(harness) as record:
        cancelled = await cancel(harness, task)

        assert [E.TASK_CANCELLED] == await record.types(task.task_id)
    await assert_stands(harness, task.task_id, S.CANCELLED, Place.NOWHERE)
    assert 0 == (await harness.backend.queues.stats(QUEUE)).depth
    for delivery in deliveries:
        change = decide_start(harness, delivery)
        assert isinstance(change, Change)
        assert Conflict(bare(cancelled)) == await commit(harness, change)


async def test_row_39_a_cancelled_task_never_runs_although_its_record_is_gone(harness: Harness) -> None:
    task = await submit(harness, idempotency_key=KEY)
    delivery = await take_one(harness, task)
    await cancel(harness, task)
    await harness.evict(task.task_id)

    change = decide_start(harness, delivery, task=rebuild(delivery.fields, receipt=delivery.receipt))

    assert isinstance(change, Change)
    assert Refused(requirement=Requirement.HELD, task=None) == await commit(harness, change)
    assert not any((await harness.census()).values())


async def test_row_40_a_running_task_is_asked_to_stop(harness: Harness) -> None:
    running = await run(harness, idempotency_key=KEY)

    async with recording(harness) as record:
        task = await cancel(harness, running)

        assert [E.TASK_CANCEL_REQUESTED] == await record.types(task.task_id)
    await assert_stands(harness, task.task_id, S.RUNNING, Place.HELD)
    assert (True, running.lease) == (task.cancel_requested, task.lease)
    assert ["task.cancel_requested"] == await _actions(harness)
    again = lifecycle.cancel(task, now=now(harness), token=a_token(), by=OPERATOR)
    assert Drop(DropReason.ALREADY_REQUESTED) == again


@pytest.mark.parametrize("status", TERMINAL)
async def test_row_41_an_ended_task_is_not_cancelled(harness: Harness, status: TaskStatus) -> None:
    task = await bring_to(harness, status)

    decision = lifecycle.cancel(task, now=now(harness), token=a_token(), by=OPERATOR)

    assert Drop(DropReason.ENDED) == decision


async def test_row_42_a_task_that_is_gone_is_not_cancelled(harness: Harness) -> None:
    task = await submit(harness)
    change = lifecycle.cancel(task, now=now(harness), token=a_token(), by=OPERATOR)
    assert isinstance(change, Change)
    await harness.evict(task.task_id)

    assert Conflict(None) == await commit(harness, change)
    assert [] == await _actions(harness)


async def test_row_43_a_dead_letter_lives_again(harness: Harness) -> None:
    dead = await bring_to(harness, S.DEAD_LETTERED, idempotency_key=KEY, ttl=seconds(600))
    await harness.advance(seconds(60))

    async with recording(harness) as record:
        task = await make(harness, lifecycle.requeue(dead, now=now(harness), token=a_token(), by=OPERATOR))
        (event,) = await record.heard()

    await assert_stands(harness, task.task_id, S.QUEUED, Place.READY)
    assert (E.TASK_QUEUED, {"requeued": True}) == (event.type, event.metadata)
    assert (0, dead.history, ()) == (task.attempt, task.previous_attempts, task.history)
    assert task.requeued_at is not None
    assert task.requeued_at + seconds(600) == task.ttl_at
    assert ["dlq.requeue"] == await _actions(harness)
    (delivery,) = await take(harness)
    assert "1" == delivery.fields["attempt"]


async def test_row_44_a_dead_letter_whose_record_is_gone_lives_again(harness: Harness) -> None:
    dead = await bring_to(harness, S.DEAD_LETTERED, idempotency_key=KEY, payload='{"kept": []}')
    await harness.evict(dead.task_id)
    letter = await harness.backend.dead_letters.get(dead.task_id)
    assert letter is not None
    assert letter.task is not None

    task = await make(harness, lifecycle.requeue(letter.task, now=now(harness), token=a_token(), by=OPERATOR))

    await assert_stands(harness, task.task_id, S.QUEUED, Place.READY)
    assert ('{"kept": []}', dead.max_attempts, 1) == (task.payload, task.max_attempts, len(task.previous_attempts))
    assert await harness.backend.dead_letters.get(dead.task_id) is None


async def test_row_45_a_discarded_dead_letter_keeps_its_status(harness: Harness) -> None:
    dead = await bring_to(harness, S.DEAD_LETTERED, idempotency_key=KEY)

    async with recording(harness) as record:
        task = await make(harness, lifecycle.discard(dead, now=now(harness), token=a_token(), by=OPERATOR))

        assert [] == await record.types(task.task_id)
    await assert_stands(harness, task.task_id, S.DEAD_LETTERED, Place.NOWHERE)
    assert ["dlq.discard"] == await _actions(harness)
    again = lifecycle.requeue(task, now=now(harness), token=a_token(), by=OPERATOR)
    assert Drop(DropReason.DISCARDED) == again


async def test_row_46_a_purged_dead_letter_keeps_its_status_and_cannot_be_requeued(harness: Harness) -> None:
    dead = await bring_to(harness, S.DEAD_LETTERED, idempotency_key=KEY)

    assert 1 == await harness.backend.dead_letters.purge(audit=an_audit_entry(action="dlq.purge"))

    await assert_stands(harness, dead.task_id, S.DEAD_LETTERED, Place.NOWHERE)
    change = lifecycle.requeue(dead, now=now(harness), token=a_token(), by=OPERATOR)
    assert isinstance(change, Change)
    assert isinstance(await commit(harness, change), Refused)
    assert ["dlq.purge"] == await _actions(harness)


async def test_row_47_a_trimmed_dead_letter_keeps_its_record(open_harness: OpenHarness) -> None:
    async with open_harness(options=BackendOptions(dead_letter_limit=1)) as harness:
        dead = await bring_to(harness, S.DEAD_LETTERED, idempotency_key=KEY)
        for _ in range(250):
            await bring_to(harness, S.DEAD_LETTERED)

        await assert_stands(harness, dead.task_id, S.DEAD_LETTERED, Place.NOWHERE)
        assert await harness.backend.dead_letters.count() <= 1 + 100


async def test_row_48_a_purged_task_is_cancelled(harness: Harness) -> None:
    queued = await submit(harness, idempotency_key=KEY)

    async with recording(harness) as record:
        task = await make(harness, lifecycle.purge(queued, now=now(harness), token=a_token()))
        (event,) = await record.heard()

    await assert_stands(harness, task.task_id, S.CANCELLED, Place.NOWHERE)
    assert (E.TASK_CANCELLED, {"purged": True}) == (event.type, event.metadata)


async def test_row_48_a_whole_queue_is_purged_but_for_what_is_held(harness: Harness) -> None:
    held = await bring_to(harness, S.RUNNING)
    tasks = [await submit(harness, priority=priority) for priority in range(10)]
    found = await harness.backend.queues.undelivered(QUEUE, limit=100)
    changes = [lifecycle.purge(one, now=now(harness), token=a_token()) for one in found if isinstance(one, Task)]

    answers = await harness.backend.broker.commit([one for one in changes if isinstance(one, Change)])

    assert [Applied] * 10 == [type(answer) for answer in answers]
    assert {S.CANCELLED} == {(await stored(harness, task.task_id)).status for task in tasks}
    assert 1 == (await harness.backend.queues.stats(QUEUE)).depth
    assert held == await stored(harness, held.task_id)


async def test_row_49_an_entry_that_is_no_tasks_is_dropped(harness: Harness) -> None:
    task = await submit(harness, idempotency_key=KEY)
    duplicate = await harness.duplicate(task.task_id)

    assert 1 == await harness.backend.queues.drop([duplicate])

    await assert_stands(harness, task.task_id, S.QUEUED, Place.READY)


async def test_row_50_what_runs_goes_on_while_its_queue_is_paused(harness: Harness) -> None:
    running = await run(harness, idempotency_key=KEY)
    due = await bring_to(harness, S.PENDING)
    queues = harness.backend.queues
    await queues.pause(QUEUE, audit=an_audit_entry(), event=an_event())

    await end(harness, running, a_success())
    await harness.advance(seconds(61))
    assert [bare(due)] == list(await claim_due(harness))
    await make(harness, lifecycle.promote(due, now=now(harness), token=a_token()))

    await assert_stands(harness, running.task_id, S.SUCCEEDED, Place.NOWHERE)
    assert 1 == (await queues.stats(QUEUE)).depth


@pytest.mark.parametrize("status", TERMINAL)
async def test_row_51_an_ended_task_is_forgotten_after_its_retention(harness: Harness, status: TaskStatus) -> None:
    task = await bring_to(harness, status)

    await harness.advance(harness.options.retention.task + seconds(2))

    assert await harness.backend.broker.load(task.task_id) is None
    assert [] == list((await harness.backend.broker.recent(queue=None, status=None, limit=9)).tasks)


async def test_row_52_a_queued_task_whose_record_vanished_is_run(harness: Harness) -> None:
    task = await submit(harness)
    await harness.advance(harness.options.retention.task + seconds(2))
    delivery = await take_one(harness, task)
    assert delivery.task is None

    started = await make(
        harness, decide_start(harness, delivery, task=rebuild(delivery.fields, receipt=delivery.receipt))
    )

    await assert_stands(harness, started.task_id, S.RUNNING, Place.HELD)


async def test_row_52_a_scheduled_task_whose_record_vanished_is_forgotten(harness: Harness) -> None:
    task = await bring_to(harness, S.RETRYING)
    await harness.evict(task.task_id)
    await harness.advance(seconds(10))

    assert [task.task_id] == list(await claim_due(harness))
    assert await harness.backend.broker.forget(task.task_id, version=NO_VERSION)
    assert not any((await harness.census()).values())


async def test_row_53_a_key_is_new_again_when_its_record_is_gone(harness: Harness) -> None:
    old = await run(harness, idempotency_key=KEY, worker=WORKER)
    await harness.advance(harness.options.retention.idempotency + old.timeout + seconds(2))

    answer = await create(harness, an_admission(now=now(harness), idempotency_key=KEY))

    assert isinstance(answer, Applied)
    await end(harness, old, a_success())
    record = await key_record(harness, KEY)
    assert record is not None
    assert (answer.task.task_id, RecordState.PROCESSING) == (record.task_id, record.state)


async def test_row_54_a_result_goes_before_its_task(harness: Harness) -> None:
    task = await end(harness, await run(harness, idempotency_key=KEY), a_success())

    await harness.advance(harness.options.retention.result + seconds(2))

    assert await harness.backend.broker.result(task.task_id) is None
    await assert_stands(harness, task.task_id, S.SUCCEEDED, Place.NOWHERE)
