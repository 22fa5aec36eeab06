import pytest
from msgspec.structs import replace

from dtq.domain.audit import AuditEntry
from dtq.domain.change import Change, Requirement
from dtq.domain.decision import Drop, DropReason
from dtq.domain.events import EventType
from dtq.domain.lifecycle import cancel, purge
from dtq.domain.status import TaskStatus
from dtq.domain.task import Task
from tests.domain.factories import ENDED, NOW, OPERATOR, STATUSES, TASK_ID, TOKEN, a_task

WAITING = (TaskStatus.PENDING, TaskStatus.QUEUED, TaskStatus.RETRYING)


def cancelled(task: Task) -> Change:
    decision = cancel(task, now=NOW, token=TOKEN, by=OPERATOR)
    assert isinstance(decision, Change)
    return decision


def an_audit_of(action: str) -> AuditEntry:
    return AuditEntry(
        actor="cli:ann@host",
        action=action,
        ts=NOW,
        request_id="request-1",
        task_id=TASK_ID,
        queue=a_task().queue,
    )


@pytest.mark.parametrize("status", WAITING)
def test_a_waiting_task_is_cancelled_at_once(status: TaskStatus) -> None:
    task = a_task(status)

    change = cancelled(task)

    expected = replace(task, status=TaskStatus.CANCELLED, finished_at=NOW, entry_id=None, version=TOKEN)
    assert expected == change.after
    assert change.event is not None
    assert (EventType.TASK_CANCELLED, TOKEN, None) == (change.event.type, change.event.event_id, change.event.metadata)
    assert ((), an_audit_of("task.cancel")) == (change.requires, change.audit)


def test_a_running_task_is_asked_to_cancel_and_runs_on() -> None:
    task = a_task(TaskStatus.RUNNING)

    change = cancelled(task)

    assert replace(task, cancel_requested=True, version=TOKEN) == change.after
    assert change.event is not None
    assert EventType.TASK_CANCEL_REQUESTED is change.event.type
    assert ((), an_audit_of("task.cancel_requested")) == (change.requires, change.audit)


def test_a_second_request_changes_nothing() -> None:
    task = replace(a_task(TaskStatus.RUNNING), cancel_requested=True)

    assert Drop(DropReason.ALREADY_REQUESTED) == cancel(task, now=NOW, token=TOKEN, by=OPERATOR)


@pytest.mark.parametrize("status", ENDED)
def test_an_ended_task_is_not_cancelled(status: TaskStatus) -> None:
    assert Drop(DropReason.ENDED) == cancel(a_task(status), now=NOW, token=TOKEN, by=OPERATOR)


def test_a_purge_cancels_a_queued_task_that_nobody_has_read() -> None:
    task = a_task()

    change = purge(task, now=NOW, token=TOKEN)

    assert isinstance(change, Change)
    expected = replace(task, status=TaskStatus.CANCELLED, finished_at=NOW, entry_id=None, version=TOKEN)
    assert expected == change.after
    assert (Requirement.UNDELIVERED,) == change.requires
    assert change.event is not None
    assert (EventType.TASK_CANCELLED, {"purged": True}) == (change.event.type, change.event.metadata)
    assert change.audit is None


def test_a_purge_carries_the_audit_entry_it_is_given() -> None:
    change = purge(a_task(), now=NOW, token=TOKEN, audit=an_audit_of("queue.purge"))

    assert isinstance(change, Change)
    assert an_audit_of("queue.purge") == change.audit


@pytest.mark.parametrize("status", [status for status in STATUSES if status is not TaskStatus.QUEUED])
def test_a_purge_leaves_every_other_task_alone(status: TaskStatus) -> None:
    assert Drop(DropReason.MOVED) == purge(a_task(status), now=NOW, token=TOKEN)
