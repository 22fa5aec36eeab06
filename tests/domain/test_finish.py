from datetime import timedelta

import pytest
from msgspec.structs import replace

from dtq.domain.change import Change
from dtq.domain.decision import Drop, DropReason
from dtq.domain.delivery import FailurePolicy, finish
from dtq.domain.events import EventType
from dtq.domain.outcome import Failed, Outcome, Succeeded
from dtq.domain.status import Place, TaskStatus
from dtq.domain.task import AttemptRecord, Failure, LeaseToken, Task, place_of
from tests.domain.factories import (
    BEGIN,
    FAILURE,
    LEASE,
    NEW_LEASE,
    NOW,
    POLICY,
    STATUSES,
    TOKEN,
    WORKER,
    a_record,
    a_task,
)

SECOND = timedelta(seconds=1)
SUCCESS = Succeeded(result='{"a":1}')
RETRYABLE = Failed(failure=FAILURE)
PERMANENT = Failed(failure=replace(FAILURE, retryable=False))
OUTCOMES = (SUCCESS, RETRYABLE, PERMANENT)


def decided(
    task: Task,
    outcome: Outcome,
    *,
    lease: LeaseToken = LEASE,
    policy: FailurePolicy = POLICY,
    jitter: float = 0,
) -> Change | Drop:
    return finish(task, lease=lease, outcome=outcome, now=NOW, token=TOKEN, policy=policy, jitter=jitter)


def finished(task: Task, outcome: Outcome, *, policy: FailurePolicy = POLICY, jitter: float = 0) -> Change:
    decision = decided(task, outcome, policy=policy, jitter=jitter)
    assert isinstance(decision, Change)
    return decision


def ended(task: Task, *, failure: Failure | None, retry_delay: timedelta | None = None) -> Task:
    record = AttemptRecord(
        attempt=task.attempt,
        started_at=BEGIN,
        finished_at=NOW,
        worker_id=WORKER,
        failure=failure,
        retry_delay=retry_delay,
    )
    return replace(
        task,
        finished_at=NOW,
        duration=NOW - BEGIN,
        history=(*task.history, record),
        lease=None,
        entry_id=None,
        version=TOKEN,
    )


def announced(change: Change) -> EventType:
    event = change.event
    assert event is not None
    assert (change.after.version, NOW, WORKER) == (event.event_id, event.ts, event.worker_id)
    assert change.after.attempt == event.attempt
    return event.type


def test_a_success_ends_the_task_with_its_result() -> None:
    task = a_task(TaskStatus.RUNNING)

    change = finished(task, SUCCESS)

    assert replace(ended(task, failure=None), status=TaskStatus.SUCCEEDED) == change.after
    assert ('{"a":1}', EventType.TASK_SUCCEEDED) == (change.result, announced(change))


def test_a_result_that_was_too_large_is_said_to_be_missing() -> None:
    change = finished(a_task(TaskStatus.RUNNING), Succeeded(result=None, truncated=True))

    assert (TaskStatus.SUCCEEDED, True, None) == (change.after.status, change.after.result_truncated, change.result)


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 1), (2, 2)])
def test_a_retryable_failure_with_attempts_left_is_scheduled(attempt: int, seconds: int) -> None:
    task = replace(a_task(TaskStatus.RUNNING), attempt=attempt)

    change = finished(task, RETRYABLE)

    delay = timedelta(seconds=seconds)
    expected = replace(
        ended(task, failure=FAILURE, retry_delay=delay),
        status=TaskStatus.RETRYING,
        failure=FAILURE,
        retry_delay=delay,
        available_at=NOW + delay,
    )
    assert expected == change.after
    assert EventType.TASK_RETRY_SCHEDULED is announced(change)


def test_the_drawn_jitter_moves_the_retry() -> None:
    change = finished(a_task(TaskStatus.RUNNING), RETRYABLE, jitter=-0.2)

    assert NOW + timedelta(milliseconds=800) == change.after.available_at


@pytest.mark.parametrize(("outcome", "attempt"), [(RETRYABLE, 3), (PERMANENT, 1), (PERMANENT, 2), (PERMANENT, 3)])
@pytest.mark.parametrize(
    ("dead_letters", "status", "kind", "place"),
    [
        (True, TaskStatus.DEAD_LETTERED, EventType.TASK_DEAD_LETTERED, Place.DEAD),
        (False, TaskStatus.FAILED, EventType.TASK_FAILED, Place.NOWHERE),
    ],
)
def test_a_permanent_failure_or_the_last_one_gives_the_task_up(
    *,
    outcome: Failed,
    attempt: int,
    dead_letters: bool,
    status: TaskStatus,
    kind: EventType,
    place: Place,
) -> None:
    task = replace(a_task(TaskStatus.RUNNING), attempt=attempt)

    change = finished(task, outcome, policy=replace(POLICY, dead_letters=dead_letters))

    assert replace(ended(task, failure=outcome.failure), status=status, failure=outcome.failure) == change.after
    assert (kind, place) == (announced(change), place_of(change.after))
    assert (None, None) == (change.after.dlq_entry_id, change.after.retry_delay)


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("attempt", [1, 3])
def test_a_requested_cancellation_wins_over_every_outcome(outcome: Outcome, attempt: int) -> None:
    task = replace(a_task(TaskStatus.RUNNING), attempt=attempt, cancel_requested=True)

    change = finished(task, outcome)

    assert replace(ended(task, failure=None), status=TaskStatus.CANCELLED) == change.after
    assert (None, EventType.TASK_CANCELLED) == (change.result, announced(change))


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_finish_under_a_lease_of_the_past_changes_nothing(outcome: Outcome) -> None:
    task = a_task(TaskStatus.RUNNING)

    assert Drop(DropReason.STALE) == decided(task, outcome, lease=NEW_LEASE)


@pytest.mark.parametrize("status", [status for status in STATUSES if status is not TaskStatus.RUNNING])
def test_a_finish_of_a_task_that_does_not_run_changes_nothing(status: TaskStatus) -> None:
    assert Drop(DropReason.STALE) == decided(a_task(status), SUCCESS)


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_finish_needs_the_lease_and_nothing_else(outcome: Outcome) -> None:
    change = finished(a_task(TaskStatus.RUNNING), outcome)

    assert ((), None, None) == (change.requires, change.holder, change.audit)


def test_the_history_grows_by_one_record_an_attempt() -> None:
    task = replace(a_task(TaskStatus.RUNNING), attempt=2, history=(a_record(1),))

    assert [1, 2] == [record.attempt for record in finished(task, SUCCESS).after.history]


def test_a_finish_past_the_time_to_live_counts() -> None:
    task = replace(a_task(TaskStatus.RUNNING), ttl_at=BEGIN)

    assert TaskStatus.SUCCEEDED is finished(task, SUCCESS).after.status


def test_a_task_that_ran_without_a_known_start_has_no_duration() -> None:
    task = replace(a_task(TaskStatus.RUNNING), started_at=None)

    assert finished(task, SUCCESS).after.duration is None
