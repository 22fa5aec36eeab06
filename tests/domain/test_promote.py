from datetime import timedelta

import pytest
from msgspec.structs import replace

from dtq.domain.change import Change
from dtq.domain.decision import Drop, DropReason
from dtq.domain.events import EventType
from dtq.domain.lifecycle import expire, is_expired, promote
from dtq.domain.status import TaskStatus
from dtq.domain.task import Task
from tests.domain.factories import NOW, STATUSES, TOKEN, a_task

INSTANT = timedelta(milliseconds=1)
WAITING = (TaskStatus.PENDING, TaskStatus.RETRYING)


def promoted(task: Task) -> Change:
    decision = promote(task, now=NOW, token=TOKEN)
    assert isinstance(decision, Change)
    return decision


@pytest.mark.parametrize(
    ("status", "kind"), [(TaskStatus.PENDING, EventType.TASK_QUEUED), (TaskStatus.RETRYING, EventType.TASK_RETRIED)]
)
def test_a_due_task_is_queued_and_asks_for_a_new_entry(status: TaskStatus, kind: EventType) -> None:
    task = replace(a_task(status), available_at=NOW)

    change = promoted(task)

    assert replace(task, status=TaskStatus.QUEUED, entry_id=None, version=TOKEN) == change.after
    assert change.event is not None
    assert (kind, TOKEN, NOW, None) == (
        change.event.type,
        change.event.event_id,
        change.event.ts,
        change.event.worker_id,
    )
    assert () == change.requires


@pytest.mark.parametrize("status", WAITING)
def test_a_task_that_is_not_due_stays_in_the_schedule(status: TaskStatus) -> None:
    task = replace(a_task(status), available_at=NOW + INSTANT)

    assert Drop(DropReason.NOT_DUE) == promote(task, now=NOW, token=TOKEN)


@pytest.mark.parametrize("status", [status for status in STATUSES if status not in WAITING])
def test_a_task_that_does_not_wait_is_not_promoted(status: TaskStatus) -> None:
    assert Drop(DropReason.NOT_WAITING) == promote(a_task(status), now=NOW, token=TOKEN)


def test_a_delayed_task_past_its_time_to_live_expires_instead() -> None:
    task = replace(a_task(TaskStatus.PENDING), ttl_at=NOW)

    change = promoted(task)

    assert replace(task, status=TaskStatus.EXPIRED, finished_at=NOW, version=TOKEN) == change.after
    assert change.event is not None
    assert EventType.TASK_EXPIRED is change.event.type
    assert ((), None) == (change.requires, change.holder)


def test_a_retry_past_its_time_to_live_is_queued_and_expires_at_its_start() -> None:
    task = replace(a_task(TaskStatus.RETRYING), ttl_at=NOW)

    assert TaskStatus.QUEUED is promoted(task).after.status


@pytest.mark.parametrize(("left", "expired"), [(-INSTANT, True), (timedelta(), True), (INSTANT, False)])
def test_the_time_to_live_ends_at_its_moment(*, left: timedelta, expired: bool) -> None:
    assert expired == is_expired(replace(a_task(), ttl_at=NOW + left), now=NOW)


def test_a_task_without_time_to_live_never_expires() -> None:
    assert not is_expired(a_task(), now=NOW)


def test_an_expiry_takes_the_entry_away() -> None:
    change = expire(a_task(), now=NOW, token=TOKEN)

    assert (TaskStatus.EXPIRED, None, NOW) == (change.after.status, change.after.entry_id, change.after.finished_at)
