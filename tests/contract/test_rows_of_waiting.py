"""Rows 1 to 12 of the state table: entry and waiting, through the domain's deciders and the broker."""

from dtq.domain import lifecycle
from dtq.domain.admission import BrokerLimits
from dtq.domain.change import Change
from dtq.domain.decision import Drop, DropReason
from dtq.domain.events import EventType
from dtq.domain.idempotency import InProgress, Replay, answer
from dtq.domain.status import Place, TaskStatus
from dtq.domain.task import NO_VERSION, Task
from dtq.ports.answers import Already, Conflict, Full, KeyTaken
from tests.contract.harness import Harness
from tests.contract.recording import recording
from tests.contract.standing import KEY, assert_stands
from tests.contract.steps import (
    bare,
    bring_to,
    claim,
    claim_due,
    commit,
    create,
    make,
    now,
    promote,
    seconds,
    stored,
    submit,
)
from tests.factories import QUEUE, a_token, an_admission

E, S = EventType, TaskStatus


async def test_row_1_a_submission_is_queued(harness: Harness) -> None:
    async with recording(harness) as record:
        task = await submit(harness, idempotency_key=KEY)

        assert [E.TASK_QUEUED] == await record.types(task.task_id)
    await assert_stands(harness, task.task_id, S.QUEUED, Place.READY)
    assert (0, task.created_at) == (task.attempt, task.available_at)


async def test_row_2_a_delayed_submission_is_pending(harness: Harness) -> None:
    async with recording(harness) as record:
        task = await submit(harness, idempotency_key=KEY, delay=seconds(60))

        assert [] == await record.types(task.task_id)
    await assert_stands(harness, task.task_id, S.PENDING, Place.SCHEDULE)
    assert 1 == (await harness.backend.queues.stats(QUEUE)).retry_scheduled


async def test_row_3_a_key_in_progress_names_its_task(harness: Harness) -> None:
    task = await bring_to(harness, S.RUNNING, idempotency_key=KEY)

    taken = await create(harness, an_admission(idempotency_key=KEY))

    assert isinstance(taken, KeyTaken)
    assert InProgress(task_id=task.task_id, status=S.RUNNING) == answer(taken.record, task=task)


async def test_row_4_a_key_of_an_ended_task_replays_it(harness: Harness) -> None:
    task = await bring_to(harness, S.SUCCEEDED, idempotency_key=KEY)

    taken = await create(harness, an_admission(idempotency_key=KEY))

    assert isinstance(taken, KeyTaken)
    assert Replay(task_id=task.task_id, task=task) == answer(taken.record, task=task)


async def test_row_5_a_limit_leaves_no_record(harness: Harness) -> None:
    admission = an_admission(now=now(harness), idempotency_key=KEY)

    assert isinstance(await create(harness, admission, limits=BrokerLimits(queue_depth=0)), Full)

    task = await submit(harness, idempotency_key=KEY)
    await assert_stands(harness, task.task_id, S.QUEUED, Place.READY)


async def test_row_6_a_submission_sent_twice_is_one_task(harness: Harness) -> None:
    admission = an_admission(now=now(harness), idempotency_key=KEY)
    await create(harness, admission)

    assert isinstance(await create(harness, admission), Already)

    assert 1 == (await harness.backend.queues.stats(QUEUE)).depth


async def test_row_7_what_is_due_is_claimed(harness: Harness) -> None:
    task = await bring_to(harness, S.PENDING, idempotency_key=KEY)

    assert task.task_id == (await claim(harness, task)).task_id

    assert await harness.backend.broker.next_due() is None
    await assert_stands(harness, task.task_id, S.PENDING, Place.SCHEDULE)


async def test_row_8_what_a_dead_leader_claimed_comes_back(harness: Harness) -> None:
    task = await claim(harness, await bring_to(harness, S.RETRYING, idempotency_key=KEY))
    await harness.advance(seconds(61))

    moment = now(harness)
    await harness.backend.broker.return_stale(claimed_before=moment - seconds(60), now=moment, limit=100)

    assert [bare(task)] == list(await claim_due(harness))
    await assert_stands(harness, task.task_id, S.RETRYING, Place.SCHEDULE)


async def test_row_9_a_delayed_task_is_queued_when_due(harness: Harness) -> None:
    pending = await bring_to(harness, S.PENDING, idempotency_key=KEY)

    async with recording(harness) as record:
        task = await promote(harness, pending)

        assert [E.TASK_QUEUED] == await record.types(task.task_id)
    await assert_stands(harness, task.task_id, S.QUEUED, Place.READY)
    assert 0 == (await harness.backend.queues.stats(QUEUE)).retry_scheduled


async def test_row_10_a_retrying_task_is_queued_when_due(harness: Harness) -> None:
    retrying = await bring_to(harness, S.RETRYING, idempotency_key=KEY)

    async with recording(harness) as record:
        task = await promote(harness, retrying)

        assert [E.TASK_RETRIED] == await record.types(task.task_id)
    await assert_stands(harness, task.task_id, S.QUEUED, Place.READY)
    assert 1 == task.attempt


async def test_row_11_a_delayed_task_past_its_time_to_live_expires(harness: Harness) -> None:
    pending = await bring_to(harness, S.PENDING, idempotency_key=KEY, ttl=seconds(30))

    async with recording(harness) as record:
        task = await promote(harness, pending)

        assert [E.TASK_EXPIRED] == await record.types(task.task_id)
    await assert_stands(harness, task.task_id, S.EXPIRED, Place.NOWHERE)
    assert 0 == (await harness.backend.queues.stats(QUEUE)).retry_scheduled


async def test_row_12_a_claim_of_a_task_that_no_longer_waits_is_forgotten(harness: Harness) -> None:
    claimed = await claim(harness, await bring_to(harness, S.PENDING, idempotency_key=KEY))
    late = lifecycle.promote(claimed, now=now(harness), token=a_token())
    task = await make(harness, lifecycle.promote(claimed, now=now(harness), token=a_token()))
    assert isinstance(late, Change)

    assert Conflict(bare(task)) == await commit(harness, late)
    assert Drop(DropReason.NOT_WAITING) == lifecycle.promote(task, now=now(harness), token=a_token())
    assert not await harness.backend.broker.forget(task.task_id, version=task.version)

    await assert_stands(harness, task.task_id, S.QUEUED, Place.READY)
    assert 1 == (await harness.backend.queues.stats(QUEUE)).depth


async def test_row_12_a_claim_without_a_task_is_forgotten(harness: Harness) -> None:
    task = await bring_to(harness, S.PENDING)
    await harness.evict(task.task_id)
    await harness.advance(seconds(61))

    (found,) = await claim_due(harness)

    assert not isinstance(found, Task)
    assert await harness.backend.broker.forget(found, version=NO_VERSION)
    assert not any((await harness.census()).values())


async def test_a_stored_task_is_what_its_steps_made_of_it(harness: Harness) -> None:
    task = await promote(harness, await bring_to(harness, S.RETRYING, payload='{"x": [1, 2]}', metadata='{"m": {}}'))

    assert task == await stored(harness, task.task_id)
    assert ('{"x": [1, 2]}', '{"m": {}}', 1) == (task.payload, task.metadata, len(task.history))
