"""The idempotency record after each step: whose it is, what it says, how long it lives."""

from datetime import datetime, timedelta

import pytest

from dtq.domain import lifecycle
from dtq.domain.idempotency import IdempotencyRecord, InProgress, RecordState, Replay, TakeOver, answer
from dtq.domain.retention import record_lifetime
from dtq.domain.status import TaskStatus
from dtq.domain.task import Task
from dtq.ports.answers import Applied, KeyTaken
from tests.contract.harness import Harness
from tests.contract.kinds import KINDS, prepared
from tests.contract.steps import (
    bring_to,
    create,
    decide_start,
    end,
    key_record,
    make,
    now,
    promote,
    reap_one,
    run,
    seconds,
    stored,
    submit,
    take_one,
    write,
)
from tests.factories import OPERATOR, WORKER, a_success, a_token, an_admission

PROCESSING, COMPLETED, FAILED = RecordState.PROCESSING, RecordState.COMPLETED, RecordState.FAILED
STATES = {
    TaskStatus.PENDING: PROCESSING,
    TaskStatus.QUEUED: PROCESSING,
    TaskStatus.RUNNING: PROCESSING,
    TaskStatus.RETRYING: PROCESSING,
    TaskStatus.SUCCEEDED: COMPLETED,
    TaskStatus.FAILED: FAILED,
    TaskStatus.DEAD_LETTERED: FAILED,
    TaskStatus.CANCELLED: FAILED,
    TaskStatus.EXPIRED: FAILED,
}


@pytest.mark.parametrize("status", TaskStatus)
async def test_the_record_tells_the_state_of_its_task(harness: Harness, status: TaskStatus) -> None:
    task = await bring_to(harness, status, idempotency_key="k")

    record = await key_record(harness, "k")

    assert record is not None
    assert (task.task_id, STATES[status]) == (record.task_id, record.state)


@pytest.mark.parametrize("kind", KINDS)
async def test_each_step_writes_the_record_that_belongs_to_it(harness: Harness, kind: str) -> None:
    change = await prepared(harness, kind, key="k")

    answer = await write(harness, change)

    assert isinstance(answer, Applied)
    assert not answer.detached
    expected = IdempotencyRecord(task_id=change.after.task_id, state=STATES[change.after.status], updated_at=change.at)
    assert expected == await key_record(harness, "k")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in {"submit", "submit_delayed"}])
async def test_a_step_leaves_the_record_of_another_task_alone(harness: Harness, kind: str) -> None:
    change = await prepared(harness, kind, key="k")
    other = await _take_the_key(harness, holder=change.after.task_id)

    answer = await write(harness, change)

    assert isinstance(answer, Applied)
    assert answer.detached
    record = await key_record(harness, "k")
    assert record is not None
    assert (other, PROCESSING) == (record.task_id, record.state)


async def _take_the_key(harness: Harness, *, holder: str) -> str:
    """Let another task have the key, as it may once the record has expired."""
    taken = await create(harness, an_admission(idempotency_key="k"))
    assert isinstance(taken, KeyTaken)
    assert taken.record is not None
    assert holder == taken.record.task_id
    admission = an_admission(now=now(harness), idempotency_key="k", replaces=taken.text, delay=timedelta(days=9))
    assert isinstance(await create(harness, admission), Applied)
    return admission.change.after.task_id


def _lifetime(harness: Harness, task: Task) -> timedelta:
    return record_lifetime(task, at=now(harness), retention=harness.options.retention)


async def _lives_for(harness: Harness, lifetime: timedelta) -> bool:
    await harness.advance(lifetime - seconds(2))
    before = await key_record(harness, "k")
    await harness.advance(seconds(3))
    return (before is not None, await key_record(harness, "k")) == (True, None)


@pytest.mark.parametrize("status", [status for status in TaskStatus if status is not TaskStatus.PENDING])
async def test_the_record_lives_from_the_last_step_on(harness: Harness, status: TaskStatus) -> None:
    task = await bring_to(harness, status, idempotency_key="k")

    assert await _lives_for(harness, _lifetime(harness, task))


@pytest.mark.parametrize("step", ["promote", "start", "redeliver", "finish"])
async def test_a_step_renews_the_record(harness: Harness, step: str) -> None:
    almost = harness.options.retention.idempotency - timedelta(hours=1)
    match step:
        case "promote":
            task = await submit(harness, idempotency_key="k", delay=almost)
            task = await promote(harness, task)
        case "start":
            task = await submit(harness, idempotency_key="k")
            await harness.advance(almost)
            task = await make(harness, decide_start(harness, await take_one(harness, task)))
        case "redeliver":
            task = await run(harness, idempotency_key="k")
            await harness.advance(almost)
            task = await make(harness, decide_start(harness, await reap_one(harness, task, worker=WORKER)))
        case _:
            task = await run(harness, idempotency_key="k")
            await harness.advance(almost)
            task = await end(harness, task, a_success())

    assert await _lives_for(harness, _lifetime(harness, task))


async def test_a_missing_record_is_not_made_by_a_step_of_the_same_life(harness: Harness) -> None:
    task = await run(harness, idempotency_key="k")
    await harness.advance(_lifetime(harness, task) + seconds(1))

    await end(harness, task, a_success())

    assert await key_record(harness, "k") is None


async def test_a_missing_record_is_made_by_a_new_life(harness: Harness) -> None:
    dead = await bring_to(harness, TaskStatus.DEAD_LETTERED, idempotency_key="k")
    await harness.advance(harness.options.retention.idempotency + seconds(1))
    assert await key_record(harness, "k") is None

    await make(harness, lifecycle.requeue(dead, now=now(harness), token=a_token(), by=OPERATOR))

    record = await key_record(harness, "k")
    assert record is not None
    assert (dead.task_id, PROCESSING) == (record.task_id, record.state)


async def test_a_requeue_takes_its_own_record_back_to_processing(harness: Harness) -> None:
    dead = await bring_to(harness, TaskStatus.DEAD_LETTERED, idempotency_key="k")

    await make(harness, lifecycle.requeue(dead, now=now(harness), token=a_token(), by=OPERATOR))

    record = await key_record(harness, "k")
    assert record is not None
    assert PROCESSING is record.state


async def test_a_task_without_a_key_has_no_record(harness: Harness) -> None:
    await end(harness, await run(harness), a_success())

    assert await key_record(harness, "") is None


async def test_a_submission_under_a_used_key_is_answered_from_record_and_task(harness: Harness) -> None:
    task = await run(harness, idempotency_key="k")
    assert InProgress(task_id=task.task_id, status=TaskStatus.RUNNING) == await _answer(harness)

    ended = await end(harness, task, a_success())
    assert Replay(task_id=task.task_id, task=ended) == await _answer(harness)

    await harness.evict(task.task_id)
    assert Replay(task_id=task.task_id, task=None) == await _answer(harness)


async def test_a_record_whose_live_task_vanished_may_be_taken_over(harness: Harness) -> None:
    task = await submit(harness, idempotency_key="k")
    await harness.evict(task.task_id)

    assert TakeOver() == await _answer(harness)


async def _answer(harness: Harness) -> object:
    taken = await create(harness, an_admission(idempotency_key="k"))
    assert isinstance(taken, KeyTaken)
    assert taken.record is not None
    return answer(taken.record, task=await harness.backend.broker.load(taken.record.task_id))


async def test_a_record_is_dated(harness: Harness) -> None:
    task = await submit(harness, idempotency_key="k")

    record = await key_record(harness, "k")

    assert record is not None
    assert isinstance(record.updated_at, datetime)
    assert (await stored(harness, task.task_id)).created_at == record.updated_at
