"""Examiner: tasks that are scheduled, or on loan, at another time than their records allow for."""

from datetime import timedelta

import pytest

from dtq.domain.explained_waiting import waiting_for_time
from dtq.domain.facts import MemberFact
from dtq.domain.findings import Kind
from dtq.domain.lifecycle import reschedule
from dtq.domain.reasons import NextCode
from dtq.domain.status import TaskStatus
from dtq.domain.task import Task
from dtq.domain.workforce import Workforce
from tests.contract.examining import again, found, kinds, read, the_fact
from tests.contract.harness import Harness
from tests.contract.steps import bring_to, claim, claim_due, make, now, promote, seconds, stored
from tests.factories import WORKER, a_token, an_audit_entry

CENTURIES = timedelta(days=365_000)


@pytest.mark.parametrize("status", [TaskStatus.PENDING, TaskStatus.RETRYING])
@pytest.mark.parametrize("by", [CENTURIES, -seconds(1)])
async def test_a_task_that_is_scheduled_at_another_time_is_scheduled_again(
    harness: Harness, status: TaskStatus, by: timedelta
) -> None:
    task = await bring_to(harness, status)
    await harness.mistime(task.task_id, at=max(task.available_at, now(harness)) + by)
    (finding,) = await found(harness)
    assert (Kind.MISTIMED, task.task_id, task.queue) == (finding.kind, finding.task_id, finding.queue)

    await make(harness, reschedule(task, now=now(harness), token=a_token(), audit=an_audit_entry()))

    assert [] == await found(harness)
    assert TaskStatus.QUEUED is (await promote(harness, await stored(harness, task.task_id))).status


async def test_a_task_that_was_taken_on_loan_in_the_future_is_scheduled_again(harness: Harness) -> None:
    task = await claim(harness, await bring_to(harness, TaskStatus.PENDING))
    await harness.mistime(task.task_id, at=now(harness) + CENTURIES)
    assert [Kind.MISTIMED] == await kinds(harness)

    await make(harness, reschedule(task, now=now(harness), token=a_token(), audit=an_audit_entry()))

    assert [] == await found(harness)
    assert [task.task_id] == [one if isinstance(one, str) else one.task_id for one in await claim_due(harness)]


async def test_what_a_leader_left_behind_is_due_when_it_comes_back(harness: Harness) -> None:
    await claim(harness, await bring_to(harness, TaskStatus.PENDING))
    await harness.advance(seconds(60))
    at = now(harness)
    assert 1 == await harness.backend.broker.return_stale(claimed_before=at, now=at, limit=10)

    assert [] == await found(harness)


async def test_a_member_has_the_time_that_it_is_due_or_was_taken(harness: Harness) -> None:
    pending = await bring_to(harness, TaskStatus.PENDING)
    fact = await the_fact(harness, MemberFact, task_id=pending.task_id)
    assert (pending.available_at, None) == (fact.due, fact.claimed_at)
    assert [fact] == list(await again(harness, fact))

    await claim(harness, pending)

    (taken,) = [one for one in await read(harness) if isinstance(one, MemberFact)]
    assert taken.due is None
    assert taken.claimed_at is not None
    assert abs(taken.claimed_at - now(harness)) < seconds(5)


@pytest.mark.parametrize("on_loan", [True, False])
async def test_an_explanation_tells_of_another_time(harness: Harness, *, on_loan: bool) -> None:
    task = await bring_to(harness, TaskStatus.PENDING)
    if on_loan:
        await claim(harness, task)
    assert NextCode.MEND is not await what_is_next(harness, task)

    await harness.mistime(task.task_id, at=now(harness) + CENTURIES)

    assert NextCode.MEND is await what_is_next(harness, task)


async def what_is_next(harness: Harness, task: Task) -> NextCode:
    standing = await harness.backend.locator.locate(task.task_id, count_up_to=10)
    assert standing is not None
    workforce = Workforce(alive=frozenset({WORKER}), serving=(), interval=seconds(5))
    _, following = waiting_for_time(task, standing, workforce=workforce, now=now(harness))
    return following.code
