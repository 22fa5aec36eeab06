from datetime import timedelta

import pytest
from msgspec.structs import replace

from dtq.domain.change import Change
from dtq.domain.delivery import finish, start
from dtq.domain.lifecycle import cancel
from dtq.domain.outcome import (
    AttemptResult,
    Outcome,
    Succeeded,
    failed,
    timed_out,
    undecodable,
    unknown_task_type,
)
from dtq.domain.status import TaskStatus
from dtq.domain.task import Task
from tests.domain.factories import LEASE, NOW, OPERATOR, POLICY, TOKEN, a_claim, a_task


def finished(task: Task, outcome: Outcome) -> Change:
    change = finish(task, lease=LEASE, outcome=outcome, now=NOW, token=TOKEN, policy=POLICY, jitter=0)
    assert isinstance(change, Change)
    return change


def started(task: Task) -> Change:
    change = start(task, claim=a_claim(), now=NOW, token=TOKEN, policy=POLICY)
    assert isinstance(change, Change)
    return change


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Succeeded(result="1"), AttemptResult.SUCCESS),
        (failed("TimeoutError", "the handler's own", retryable=True), AttemptResult.FAILURE),
        (failed("WorkerLost", "a class of the handler's", retryable=False), AttemptResult.FAILURE),
        (timed_out(30), AttemptResult.TIMEOUT),
        (unknown_task_type("x"), AttemptResult.ERROR),
        (undecodable("x"), AttemptResult.ERROR),
    ],
    ids=["returned", "raised", "raised for good", "deadline", "unknown type", "undecodable"],
)
def test_an_attempt_counts_as_what_ended_it(outcome: Outcome, expected: AttemptResult) -> None:
    assert expected is finished(a_task(TaskStatus.RUNNING), outcome).attempt_result


def test_an_attempt_of_a_task_whose_cancellation_was_requested_is_no_success() -> None:
    task = replace(a_task(TaskStatus.RUNNING), cancel_requested=True)

    assert AttemptResult.ERROR is finished(task, Succeeded(result="1")).attempt_result


@pytest.mark.parametrize("changes", [{}, {"attempt": 3, "max_attempts": 3}, {"cancel_requested": True}])
def test_an_attempt_whose_worker_was_lost_counts_in_the_step_that_finds_out(changes: dict[str, object]) -> None:
    task = replace(a_task(TaskStatus.RUNNING), **changes)

    assert AttemptResult.ERROR is started(task).attempt_result


@pytest.mark.parametrize("changes", [{}, {"cancel_requested": True}, {"ttl_at": NOW}])
def test_a_step_of_a_task_that_did_not_run_ends_no_attempt(changes: dict[str, object]) -> None:
    task = replace(a_task(TaskStatus.QUEUED), **changes)

    assert started(task).attempt_result is None


def test_asking_for_a_cancellation_ends_no_attempt() -> None:
    change = cancel(a_task(TaskStatus.RUNNING), now=NOW, token=TOKEN, by=OPERATOR)

    assert isinstance(change, Change)
    assert change.attempt_result is None


def test_a_success_says_how_long_its_handler_ran() -> None:
    ran = timedelta(seconds=2)

    assert ran == finished(a_task(TaskStatus.RUNNING), Succeeded(result="1", ran=ran)).ran
