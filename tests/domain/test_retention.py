from datetime import timedelta

import pytest
from msgspec.structs import replace

from dtq.domain.change import Change
from dtq.domain.retention import Retention, record_lifetime, task_lifetime
from dtq.domain.status import TaskStatus
from tests.domain.factories import NOW, TOKEN, a_task

KEPT = Retention(task=timedelta(seconds=100), result=timedelta(seconds=1), idempotency=timedelta(seconds=10))
DELAY = timedelta(seconds=7)


def a_change_to(status: TaskStatus, *, delay: timedelta = timedelta()) -> Change:
    before = a_task(TaskStatus.PENDING if status is TaskStatus.QUEUED else TaskStatus.RUNNING)
    after = replace(a_task(status), attempt=before.attempt, available_at=NOW + delay, version=TOKEN)
    return Change(before=before, after=after, at=NOW)


def test_a_scheduled_task_is_kept_for_its_delay_and_its_retention() -> None:
    change = a_change_to(TaskStatus.RETRYING, delay=DELAY)

    assert timedelta(seconds=107) == task_lifetime(change, retention=KEPT)
    assert timedelta(seconds=17) == record_lifetime(change, retention=KEPT)


def test_a_delay_that_has_passed_shortens_nothing() -> None:
    change = a_change_to(TaskStatus.RETRYING, delay=-DELAY)

    assert timedelta(seconds=100) == task_lifetime(change, retention=KEPT)
    assert timedelta(seconds=10) == record_lifetime(change, retention=KEPT)


@pytest.mark.parametrize("status", [TaskStatus.QUEUED, TaskStatus.SUCCEEDED, TaskStatus.DEAD_LETTERED])
def test_a_task_out_of_the_schedule_is_kept_for_its_retention(status: TaskStatus) -> None:
    change = a_change_to(status, delay=DELAY)

    assert timedelta(seconds=100) == task_lifetime(change, retention=KEPT)
    assert timedelta(seconds=10) == record_lifetime(change, retention=KEPT)


def test_the_defaults_are_the_contracts() -> None:
    seconds = (
        Retention().task.total_seconds(),
        Retention().result.total_seconds(),
        Retention().idempotency.total_seconds(),
    )

    assert (604_800, 3_600, 86_400) == seconds
