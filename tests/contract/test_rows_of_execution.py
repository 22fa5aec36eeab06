"""Rows 26 to 36 of the state table: how an execution ends, and who may end it."""

from datetime import timedelta

import pytest

from dtq.domain.change import Change
from dtq.domain.decision import Drop, DropReason
from dtq.domain.delivery import FailurePolicy, finish
from dtq.domain.events import EventType
from dtq.domain.outcome import Outcome
from dtq.domain.retry import RetryPolicy
from dtq.domain.status import Place, TaskStatus
from dtq.domain.task import Task
from dtq.ports.answers import Already, Conflict
from tests.contract.harness import Harness
from tests.contract.recording import recording
from tests.contract.standing import KEY, assert_stands
from tests.contract.steps import (
    NO_DEAD_LETTERS,
    PEER,
    POLICY,
    VISIBILITY,
    bare,
    cancel,
    claim_due,
    commit,
    decide_finish,
    decide_start,
    end,
    held_lease,
    make,
    now,
    reap_one,
    run,
    seconds,
    stored,
    submit,
    take,
)
from tests.factories import QUEUE, WORKER, a_fault, a_success, a_token

E, S = EventType, TaskStatus
OUTCOMES = [a_success(), a_fault(), a_fault(retryable=False)]


async def test_row_26_success_ends_the_task_and_keeps_its_result(harness: Harness) -> None:
    running = await run(harness, idempotency_key=KEY)
    await harness.advance(seconds(3))

    async with recording(harness) as record:
        task = await end(harness, running, a_success('{"n": 1}'))

        assert [E.TASK_SUCCEEDED] == await record.types(task.task_id)
    await assert_stands(harness, task.task_id, S.SUCCEEDED, Place.NOWHERE)
    assert '{"n": 1}' == await harness.backend.broker.result(task.task_id)
    assert task.finished_at is not None
    assert running.started_at is not None
    assert (task.finished_at - running.started_at, 1) == (task.duration, len(task.history))
    assert (None, None) == (task.lease, task.entry_id)


@pytest.mark.parametrize("retryable", [True, False])
async def test_row_27_what_cannot_be_tried_again_is_dead_lettered(harness: Harness, *, retryable: bool) -> None:
    running = await run(harness, idempotency_key=KEY, max_attempts=1 if retryable else 3)

    async with recording(harness) as record:
        task = await end(harness, running, a_fault(retryable=retryable))

        assert [E.TASK_DEAD_LETTERED] == await record.types(task.task_id)
    await assert_stands(harness, task.task_id, S.DEAD_LETTERED, Place.DEAD)
    assert task.failure is not None
    assert ("OSError", "no route", retryable) == (
        task.failure.error_class,
        task.failure.error_message,
        task.failure.retryable,
    )


async def test_row_28_without_dead_letters_it_fails(harness: Harness) -> None:
    running = await run(harness, idempotency_key=KEY)

    async with recording(harness) as record:
        task = await end(harness, running, a_fault(retryable=False), policy=NO_DEAD_LETTERS)

        assert [E.TASK_FAILED] == await record.types(task.task_id)
    await assert_stands(harness, task.task_id, S.FAILED, Place.NOWHERE)
    assert 0 == await harness.backend.dead_letters.count()


async def test_row_29_what_can_be_tried_again_is_scheduled(harness: Harness) -> None:
    running = await run(harness, idempotency_key=KEY)

    async with recording(harness) as record:
        task = await end(harness, running, a_fault())

        assert [E.TASK_RETRY_SCHEDULED] == await record.types(task.task_id)
    await assert_stands(harness, task.task_id, S.RETRYING, Place.SCHEDULE)
    assert 1 == (await harness.backend.queues.stats(QUEUE)).retry_scheduled


@pytest.mark.parametrize(("attempts", "jitter"), [(1, 0.0), (1, 0.2), (2, -0.2), (4, 0.1), (9, 0.2)])
async def test_row_29_delay_and_due_time_are_read_back_as_decided(
    harness: Harness, attempts: int, jitter: float
) -> None:
    policy = FailurePolicy(retry=RetryPolicy(base=timedelta(milliseconds=1500), maximum=seconds(60)))
    task = await run(harness, max_attempts=10)
    for _ in range(attempts - 1):
        task = await make(harness, decide_start(harness, await reap_one(harness, task, worker=WORKER)))
    change = decide_finish(harness, task, a_fault(), policy=policy, jitter=jitter)
    assert isinstance(change, Change)

    task = await make(harness, change)

    delay = min(60_000, 1_500 * 2 ** (attempts - 1)) * (1 + jitter)
    assert task.finished_at is not None
    assert timedelta(milliseconds=round(delay)) == task.retry_delay == task.available_at - task.finished_at
    assert task.available_at == await harness.backend.broker.next_due()
    assert [] == list(await claim_due(harness, at=task.available_at - timedelta(milliseconds=1)))
    assert [bare(task)] == list(await claim_due(harness, at=task.available_at))


@pytest.mark.parametrize("outcome", OUTCOMES)
async def test_row_30_a_requested_cancel_wins_over_every_outcome(harness: Harness, outcome: Outcome) -> None:
    running = await cancel(harness, await run(harness, idempotency_key=KEY))

    async with recording(harness) as record:
        task = await end(harness, running, outcome)

        assert [E.TASK_CANCELLED] == await record.types(task.task_id)
    await assert_stands(harness, task.task_id, S.CANCELLED, Place.NOWHERE)
    assert await harness.backend.broker.result(task.task_id) is None


async def test_row_31_a_finish_sent_twice_is_done_once(harness: Harness) -> None:
    running = await run(harness, idempotency_key=KEY)
    change = decide_finish(harness, running, a_success())
    assert isinstance(change, Change)
    task = await make(harness, change)

    async with recording(harness) as record:
        assert Already(bare(task)) == await commit(harness, change)
        assert [] == await record.heard()
    await assert_stands(harness, task.task_id, S.SUCCEEDED, Place.NOWHERE)


async def _taken_over(harness: Harness) -> tuple[Task, Task]:
    """A task as its first worker still sees it, and as a peer runs it now."""
    first = await run(harness, idempotency_key=KEY, worker=WORKER)
    second = await make(harness, decide_start(harness, await reap_one(harness, first, worker=PEER), worker=PEER))
    return first, second


@pytest.mark.parametrize("outcome", OUTCOMES)
async def test_row_32_a_stale_finish_changes_nothing_not_even_the_acknowledgement(
    harness: Harness, outcome: Outcome
) -> None:
    first, second = await _taken_over(harness)
    stale = decide_finish(harness, first, outcome)
    assert isinstance(stale, Change)

    async with recording(harness) as record:
        assert Conflict(bare(second)) == await commit(harness, stale)
        assert [] == await record.heard()

    assert second == await stored(harness, second.task_id)
    assert [second.receipt] == list(await harness.backend.broker.owned(QUEUE, worker=PEER))
    assert await harness.backend.broker.result(second.task_id) is None
    assert 0 == await harness.backend.dead_letters.count()
    await assert_stands(harness, second.task_id, S.RUNNING, Place.HELD)
    assert Drop(DropReason.STALE) == finish(
        second,
        lease=held_lease(first).lease,
        outcome=outcome,
        now=now(harness),
        token=a_token(),
        policy=POLICY,
        jitter=0,
    )


async def test_row_32_a_finish_without_a_record_changes_nothing(harness: Harness) -> None:
    task = await run(harness)
    change = decide_finish(harness, task, a_success())
    assert isinstance(change, Change)
    await harness.evict(task.task_id)

    assert Conflict(None) == await commit(harness, change)

    assert await harness.backend.broker.load(task.task_id) is None
    assert {task.task_id} == (await harness.census())[Place.HELD]


async def test_row_33_a_lease_that_is_the_tasks_own_is_extended(harness: Harness) -> None:
    task = await run(harness, idempotency_key=KEY)
    await harness.advance(VISIBILITY)

    (report,) = await harness.backend.broker.extend([held_lease(task)], worker=WORKER)

    assert report.kept
    assert [] == list(await take(harness, worker=PEER, reap_idle=VISIBILITY))
    assert task == await stored(harness, task.task_id)


async def test_row_34_a_lease_that_is_not_is_lost(harness: Harness) -> None:
    first, second = await _taken_over(harness)

    (report,) = await harness.backend.broker.extend([held_lease(first)], worker=WORKER)

    assert not report.kept
    assert [second.receipt] == list(await harness.backend.broker.owned(QUEUE, worker=PEER))


@pytest.mark.parametrize("started", [True, False])
async def test_row_35_what_is_handed_back_keeps_its_task(harness: Harness, *, started: bool) -> None:
    task = await run(harness) if started else await submit(harness)
    await take(harness)
    assert task.receipt is not None

    assert 1 == await harness.backend.broker.release([task.receipt], worker=WORKER)

    assert task == await stored(harness, task.task_id)
    assert 1 == len(await take(harness, worker=PEER, reap_idle=VISIBILITY))


async def test_row_36_a_crash_leaves_everything_to_be_reaped(harness: Harness) -> None:
    task = await run(harness, idempotency_key=KEY)

    await harness.advance(10 * VISIBILITY)

    await assert_stands(harness, task.task_id, S.RUNNING, Place.HELD)
    delivery = await reap_one(harness, task)
    assert task == delivery.task
