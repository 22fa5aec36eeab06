from datetime import timedelta

import pytest
from msgspec.structs import replace

from dtq.domain.change import Change, Requirement
from dtq.domain.decision import Acknowledge, Drop, DropReason
from dtq.domain.delivery import Claim, FailurePolicy, start
from dtq.domain.events import EventType
from dtq.domain.status import TaskStatus
from dtq.domain.task import AttemptRecord, EntryId, Failure, QueueName, Receipt, Task
from tests.domain.factories import (
    BEGIN,
    ENDED,
    ENTRY,
    FAILURE,
    LEASE,
    NEW_LEASE,
    NOW,
    OTHER_WORKER,
    POLICY,
    TOKEN,
    WORKER,
    a_claim,
    a_record,
    a_task,
)

LOST = Failure(error_class="WorkerLost", error_message="the worker was lost during this attempt", retryable=True)
ANOTHER_ENTRY = EntryId("1-1")


def decided(task: Task, *, claim: Claim | None = None, policy: FailurePolicy = POLICY) -> Change | Acknowledge | Drop:
    return start(task, claim=claim or a_claim(), now=NOW, token=TOKEN, policy=policy)


def started(task: Task, *, policy: FailurePolicy = POLICY) -> Change:
    decision = decided(task, policy=policy)
    assert isinstance(decision, Change)
    return decision


def a_lost_record(attempt: int) -> AttemptRecord:
    return AttemptRecord(attempt=attempt, started_at=BEGIN, finished_at=NOW, worker_id=WORKER, failure=LOST)


def test_a_queued_task_runs_under_the_claims_lease() -> None:
    task = a_task()

    change = started(task)

    expected = replace(
        task,
        status=TaskStatus.RUNNING,
        attempt=1,
        started_at=NOW,
        worker_id=OTHER_WORKER,
        lease=NEW_LEASE,
        version=TOKEN,
    )
    assert expected == change.after
    assert ENTRY == change.after.entry_id


def test_a_start_needs_the_entry_to_be_held_and_the_queue_to_run() -> None:
    change = started(a_task())

    assert (Requirement.HELD, Requirement.UNPAUSED) == change.requires
    assert OTHER_WORKER == change.holder


def test_a_start_is_announced_with_its_worker() -> None:
    event = started(a_task()).event

    assert event is not None
    assert (EventType.TASK_STARTED, TOKEN, NOW, 1) == (event.type, event.event_id, event.ts, event.attempt)
    assert (OTHER_WORKER, None) == (event.worker_id, event.metadata)


def test_a_retry_forgets_the_last_outcome_and_keeps_the_history() -> None:
    task = replace(
        a_task(TaskStatus.RETRYING),
        status=TaskStatus.QUEUED,
        entry_id=ENTRY,
        retry_delay=timedelta(seconds=1),
        finished_at=BEGIN,
        duration=timedelta(seconds=1),
    )

    after = started(task).after

    assert (2, (a_record(1),)) == (after.attempt, after.history)
    assert (None, None, None, None) == (after.finished_at, after.duration, after.failure, after.retry_delay)


def test_a_start_counts_from_the_record_and_not_from_the_entry() -> None:
    task = replace(a_task(), attempt=1, history=(a_record(1),))

    assert 2 == started(task).after.attempt


def test_a_running_task_that_is_delivered_again_has_lost_its_worker_and_an_attempt() -> None:
    task = replace(a_task(TaskStatus.RUNNING), failure=None)

    change = started(task)

    expected = replace(
        task,
        attempt=2,
        started_at=NOW,
        worker_id=OTHER_WORKER,
        lease=NEW_LEASE,
        history=(a_lost_record(1),),
        version=TOKEN,
    )
    assert expected == change.after
    assert (Requirement.HELD, Requirement.UNPAUSED) == change.requires
    assert change.event is not None
    assert (EventType.TASK_STARTED, {"redelivered": True}) == (change.event.type, change.event.metadata)


def test_a_redelivered_task_past_its_time_to_live_runs_again() -> None:
    task = replace(a_task(TaskStatus.RUNNING), ttl_at=NOW)

    assert TaskStatus.RUNNING is started(task).after.status


@pytest.mark.parametrize(
    ("dead_letters", "status", "kind"),
    [
        (True, TaskStatus.DEAD_LETTERED, EventType.TASK_DEAD_LETTERED),
        (False, TaskStatus.FAILED, EventType.TASK_FAILED),
    ],
)
def test_a_worker_lost_on_the_last_attempt_ends_the_task(
    *,
    dead_letters: bool,
    status: TaskStatus,
    kind: EventType,
) -> None:
    task = replace(a_task(TaskStatus.RUNNING), attempt=3, history=(a_record(1), a_record(2)))

    change = started(task, policy=FailurePolicy(dead_letters=dead_letters))

    expected = replace(
        task,
        status=status,
        finished_at=NOW,
        duration=NOW - BEGIN,
        failure=LOST,
        history=(a_record(1), a_record(2), a_lost_record(3)),
        lease=None,
        entry_id=None,
        version=TOKEN,
    )
    assert expected == change.after
    assert ((Requirement.HELD,), OTHER_WORKER) == (change.requires, change.holder)
    assert change.event is not None
    assert (kind, WORKER, 3) == (change.event.type, change.event.worker_id, change.event.attempt)


def test_one_attempt_means_started_at_most_once() -> None:
    task = replace(a_task(TaskStatus.RUNNING), max_attempts=1)

    assert TaskStatus.DEAD_LETTERED is started(task).after.status


@pytest.mark.parametrize("status", ENDED)
@pytest.mark.parametrize("entry_id", [ENTRY, ANOTHER_ENTRY])
def test_an_entry_of_an_ended_task_is_acknowledged_without_a_word(status: TaskStatus, entry_id: EntryId) -> None:
    assert Acknowledge(absorbed=False) == decided(a_task(status), claim=a_claim(entry_id=entry_id))


@pytest.mark.parametrize("status", [TaskStatus.QUEUED, TaskStatus.RUNNING])
@pytest.mark.parametrize(
    "receipt",
    [
        Receipt(QueueName("default"), 5, ANOTHER_ENTRY),
        Receipt(QueueName("default"), 6, ENTRY),
        Receipt(QueueName("mail"), 5, ENTRY),
    ],
)
def test_an_entry_that_the_task_does_not_name_is_absorbed(status: TaskStatus, receipt: Receipt) -> None:
    claim = replace(a_claim(), receipt=receipt)

    assert Acknowledge(absorbed=True) == decided(a_task(status), claim=claim)


@pytest.mark.parametrize("status", [TaskStatus.PENDING, TaskStatus.RETRYING])
def test_every_entry_of_a_task_that_waits_for_its_time_is_absorbed(status: TaskStatus) -> None:
    assert Acknowledge(absorbed=True) == decided(a_task(status))


def test_a_duplicate_is_absorbed_even_where_it_comes_with_the_tasks_own_lease() -> None:
    claim = a_claim(lease=LEASE, entry_id=ANOTHER_ENTRY)

    assert Acknowledge(absorbed=True) == decided(a_task(TaskStatus.RUNNING), claim=claim)


def test_a_start_that_was_made_already_is_known_by_its_lease() -> None:
    task = replace(a_task(TaskStatus.RUNNING), attempt=3, cancel_requested=True)

    assert Drop(DropReason.ALREADY_MINE) == decided(task, claim=a_claim(lease=LEASE, worker=WORKER))


@pytest.mark.parametrize("attempt", [1, 3])
def test_a_task_whose_cancellation_is_requested_ends_when_its_worker_is_lost(attempt: int) -> None:
    task = replace(a_task(TaskStatus.RUNNING), attempt=attempt, cancel_requested=True)

    change = started(task)

    record = replace(a_lost_record(attempt), failure=None)
    expected = replace(
        task,
        status=TaskStatus.CANCELLED,
        finished_at=NOW,
        duration=NOW - BEGIN,
        history=(record,),
        lease=None,
        entry_id=None,
        version=TOKEN,
    )
    assert expected == change.after
    assert ((Requirement.HELD,), OTHER_WORKER) == (change.requires, change.holder)
    assert change.event is not None
    assert EventType.TASK_CANCELLED is change.event.type


def test_a_queued_task_past_its_time_to_live_expires() -> None:
    task = replace(a_task(), ttl_at=NOW)

    change = started(task)

    assert replace(task, status=TaskStatus.EXPIRED, finished_at=NOW, entry_id=None, version=TOKEN) == change.after
    assert ((Requirement.HELD,), OTHER_WORKER) == (change.requires, change.holder)
    assert change.event is not None
    assert EventType.TASK_EXPIRED is change.event.type


def test_a_queued_retry_past_its_time_to_live_expires() -> None:
    task = replace(a_task(), attempt=1, failure=FAILURE, history=(a_record(1),), ttl_at=NOW)

    assert TaskStatus.EXPIRED is started(task).after.status


def test_a_queued_task_within_its_time_to_live_runs() -> None:
    task = replace(a_task(), ttl_at=NOW + timedelta(milliseconds=1))

    assert TaskStatus.RUNNING is started(task).after.status
