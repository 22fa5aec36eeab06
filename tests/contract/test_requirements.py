"""What a change requires beside the version: each requirement kept, and each broken."""

from collections.abc import Callable

import pytest

from dtq.domain import lifecycle
from dtq.domain.change import Change, Requirement
from dtq.domain.decision import Drop
from dtq.domain.status import Place, TaskStatus
from dtq.domain.task import Task
from dtq.ports.answers import Applied, Refused
from tests.contract.harness import Harness
from tests.contract.recording import recording
from tests.contract.steps import (
    LEADER,
    PEER,
    VISIBILITY,
    bare,
    bring_to,
    commit,
    decide_start,
    make,
    now,
    reap_one,
    run,
    stored,
    submit,
    take,
    take_one,
)
from tests.factories import OPERATOR, QUEUE, WORKER, a_token, an_audit_entry, an_event


async def assert_refused(harness: Harness, decision: object, requirement: Requirement) -> None:
    """Nothing at all may be written."""
    assert isinstance(decision, Change)
    before = await _snapshot(harness, decision.after)
    async with recording(harness) as record:
        answer = await commit(harness, decision)

        assert [] == await record.heard()
    task = await harness.backend.broker.load(decision.after.task_id)
    assert Refused(requirement=requirement, task=None if task is None else bare(task)) == answer
    assert before == await _snapshot(harness, decision.after)


async def _snapshot(harness: Harness, task: Task) -> object:
    backend = harness.backend
    return (
        await backend.broker.load(task.task_id),
        await harness.census(),
        await backend.queues.stats(task.queue),
        await backend.audit.recent(limit=100),
        await backend.dead_letters.count(),
    )


async def test_a_start_needs_an_entry_that_was_read(harness: Harness) -> None:
    task = await submit(harness)
    delivery = await take_one(harness, task)
    await harness.lose_groups(QUEUE)

    await assert_refused(harness, decide_start(harness, delivery), Requirement.HELD)


async def test_of_two_workers_that_hold_one_entry_the_owner_alone_starts(harness: Harness) -> None:
    task = await submit(harness)
    stalled = await take_one(harness, task, worker=WORKER)
    reaped = await reap_one(harness, task, worker=PEER)

    await assert_refused(harness, decide_start(harness, stalled, worker=WORKER), Requirement.HELD)
    started = await make(harness, decide_start(harness, reaped, worker=PEER))

    assert (1, PEER) == (started.attempt, started.worker_id)


async def test_the_last_attempt_is_not_given_up_by_a_worker_that_lost_the_entry(harness: Harness) -> None:
    task = await run(harness, worker=WORKER, max_attempts=2)
    stalled = await reap_one(harness, task, worker=WORKER)
    reaped = await reap_one(harness, task, worker=PEER)
    running = await make(harness, decide_start(harness, reaped, worker=PEER))

    late = decide_start(harness, stalled, worker=WORKER, task=running)

    assert isinstance(late, Change)
    assert TaskStatus.DEAD_LETTERED is late.after.status
    await assert_refused(harness, late, Requirement.HELD)


async def test_a_worker_that_has_its_entry_back_may_start(harness: Harness) -> None:
    task = await submit(harness)
    delivery = await take_one(harness, task, worker=WORKER)
    await reap_one(harness, task, worker=PEER)
    await reap_one(harness, task, worker=WORKER)

    assert WORKER == (await make(harness, decide_start(harness, delivery, worker=WORKER))).worker_id


@pytest.mark.parametrize("status", [TaskStatus.QUEUED, TaskStatus.RUNNING])
async def test_nothing_starts_in_a_paused_queue(harness: Harness, status: TaskStatus) -> None:
    task = await bring_to(harness, status)
    await harness.advance(VISIBILITY)
    (delivery,) = await take(harness, reap_idle=VISIBILITY)
    assert task.receipt == delivery.receipt
    queues = harness.backend.queues
    await queues.pause(QUEUE, audit=an_audit_entry(), event=an_event())
    decision = decide_start(harness, delivery)

    await assert_refused(harness, decision, Requirement.UNPAUSED)

    await queues.resume(QUEUE, audit=an_audit_entry(), event=an_event())
    assert TaskStatus.RUNNING is (await make(harness, decision)).status


async def test_a_requirement_that_does_not_hold_leaves_the_other_changes_alone(harness: Harness) -> None:
    task, other = await submit(harness), await submit(harness, priority=9)
    deliveries = {one.receipt: one for one in await take(harness)}
    assert task.receipt is not None
    assert other.receipt is not None
    first = decide_start(harness, deliveries[task.receipt], worker=PEER)
    second = decide_start(harness, deliveries[other.receipt], worker=WORKER)
    assert isinstance(first, Change)
    assert isinstance(second, Change)

    answers = await harness.backend.broker.commit([first, second])

    assert [Refused, Applied] == [type(answer) for answer in answers]


@pytest.mark.parametrize("decide", [lifecycle.requeue, lifecycle.discard])
async def test_a_dead_letter_must_still_be_there(harness: Harness, decide: Callable[..., Change | Drop]) -> None:
    task = await bring_to(harness, TaskStatus.DEAD_LETTERED)
    await harness.backend.dead_letters.purge(audit=an_audit_entry())

    decision = decide(task, now=now(harness), token=a_token(), by=OPERATOR)

    await assert_refused(harness, decision, Requirement.IN_DEAD_LETTERS)


async def test_of_two_requeues_one_is_made(harness: Harness) -> None:
    task = await bring_to(harness, TaskStatus.DEAD_LETTERED)
    await harness.evict(task.task_id)
    letter = await harness.backend.dead_letters.get(task.task_id)
    assert letter is not None
    assert letter.task is not None
    both = [lifecycle.requeue(letter.task, now=now(harness), token=a_token(), by=OPERATOR) for _ in range(2)]

    answers = await harness.backend.broker.commit([one for one in both if isinstance(one, Change)])

    assert 1 == sum(isinstance(answer, Applied) for answer in answers)
    assert {task.task_id} == (await harness.census())[Place.READY]


async def test_a_purge_needs_an_entry_that_no_worker_has_read(harness: Harness) -> None:
    task = await submit(harness)
    await take(harness)

    await assert_refused(harness, lifecycle.purge(task, now=now(harness), token=a_token()), Requirement.UNDELIVERED)


async def test_a_purge_of_what_was_read_and_handed_back_is_refused(harness: Harness) -> None:
    task = await submit(harness)
    await take(harness)
    assert task.receipt is not None
    await harness.backend.broker.release([task.receipt], worker=WORKER)

    await assert_refused(harness, lifecycle.purge(task, now=now(harness), token=a_token()), Requirement.UNDELIVERED)


@pytest.mark.parametrize("status", [TaskStatus.PENDING, TaskStatus.RETRYING, TaskStatus.QUEUED, TaskStatus.RUNNING])
async def test_a_home_is_given_to_the_homeless_only(harness: Harness, status: TaskStatus) -> None:
    task = await bring_to(harness, status)

    await assert_refused(harness, lifecycle.rehome(task, now=now(harness), token=a_token()), Requirement.HOMELESS)


async def test_a_task_on_loan_has_a_home(harness: Harness) -> None:
    task = await bring_to(harness, TaskStatus.PENDING)
    await harness.advance(task.available_at - now(harness))
    await harness.backend.leadership.acquire(LEADER, term=VISIBILITY)
    await harness.backend.broker.take_due(now=now(harness), leader=LEADER, limit=1)

    await assert_refused(harness, lifecycle.rehome(task, now=now(harness), token=a_token()), Requirement.HOMELESS)


@pytest.mark.parametrize("status", [TaskStatus.QUEUED, TaskStatus.RUNNING])
async def test_a_stray_gets_a_new_entry_and_keeps_status_and_attempts(harness: Harness, status: TaskStatus) -> None:
    task = await bring_to(harness, status)
    await harness.orphan(task.task_id)

    after = await make(harness, lifecycle.rehome(task, now=now(harness), token=a_token()))

    assert (task.status, task.attempt, task.lease) == (after.status, after.attempt, after.lease)
    assert {task.task_id} == (await harness.census())[Place.READY]
    (delivery,) = await take(harness)
    assert after.receipt == delivery.receipt


async def test_a_scheduled_stray_is_scheduled_for_its_time(harness: Harness) -> None:
    task = await bring_to(harness, TaskStatus.PENDING)
    await harness.orphan(task.task_id)

    await make(harness, lifecycle.rehome(task, now=now(harness), token=a_token()))

    assert task.available_at == await harness.backend.broker.next_due()
    assert {task.task_id} == (await harness.census())[Place.SCHEDULE]


async def test_a_stray_whose_entry_was_rebuilt_elsewhere_is_stored_once(harness: Harness) -> None:
    task = await submit(harness)
    await harness.orphan(task.task_id)
    both = [lifecycle.rehome(task, now=now(harness), token=a_token()) for _ in range(2)]

    answers = await harness.backend.broker.commit([one for one in both if isinstance(one, Change)])

    assert 1 == sum(isinstance(answer, Applied) for answer in answers)
    assert 1 == (await harness.backend.queues.stats(QUEUE)).depth
    assert (await stored(harness, task.task_id)).entry_id != task.entry_id
