from datetime import timedelta

import pytest
from msgspec.structs import replace

from dtq.domain.admission import MAX_TIMEOUT_MS
from dtq.domain.retention import LIVING, Retention, mark_lifetime, record_lifetime, task_lifetime
from dtq.domain.status import TERMINAL, WAITING_FOR_TIME, TaskStatus
from dtq.domain.task import Task
from tests.domain.factories import NOW, a_task

SHORT = Retention(task=timedelta(seconds=100), result=timedelta(seconds=1), idempotency=timedelta(seconds=10))
LONG = Retention(task=timedelta(days=90), result=timedelta(seconds=1), idempotency=timedelta(days=30))
DELAY = timedelta(seconds=7)
Lifetimes = tuple[timedelta, timedelta]


def lifetimes(task: Task, *, retention: Retention) -> Lifetimes:
    return task_lifetime(task, at=NOW, retention=retention), record_lifetime(task, at=NOW, retention=retention)


@pytest.mark.parametrize("status", sorted(TERMINAL))
@pytest.mark.parametrize("retention", [SHORT, LONG])
def test_what_has_ended_is_kept_exactly_as_long_as_configured(status: TaskStatus, retention: Retention) -> None:
    task = replace(a_task(status), available_at=NOW + DELAY)

    assert (retention.task, retention.idempotency) == lifetimes(task, retention=retention)


@pytest.mark.parametrize("status", sorted(set(TaskStatus) - TERMINAL))
def test_what_lives_outlives_any_short_retention(status: TaskStatus) -> None:
    task = replace(a_task(status), available_at=NOW, started_at=NOW - timedelta(hours=2))

    assert (LIVING.task, LIVING.idempotency) == lifetimes(task, retention=SHORT)
    assert (LONG.task, LONG.idempotency) == lifetimes(task, retention=LONG)


@pytest.mark.parametrize("status", sorted(WAITING_FOR_TIME))
@pytest.mark.parametrize(("retention", "kept"), [(SHORT, LIVING), (LONG, LONG)])
def test_a_scheduled_task_is_kept_for_its_delay_on_top(
    status: TaskStatus, retention: Retention, kept: Retention
) -> None:
    task = replace(a_task(status), available_at=NOW + DELAY)

    assert (kept.task + DELAY, kept.idempotency + DELAY) == lifetimes(task, retention=retention)


@pytest.mark.parametrize("status", sorted(WAITING_FOR_TIME))
def test_a_delay_that_has_passed_shortens_nothing(status: TaskStatus) -> None:
    task = replace(a_task(status), available_at=NOW - DELAY)

    assert (LONG.task, LONG.idempotency) == lifetimes(task, retention=LONG)


def test_a_running_task_is_kept_for_the_rest_of_its_time_on_top() -> None:
    task = replace(a_task(TaskStatus.RUNNING), started_at=NOW - timedelta(seconds=20), timeout=timedelta(seconds=50))

    rest = timedelta(seconds=30)
    assert (LIVING.task + rest, LIVING.idempotency + rest) == lifetimes(task, retention=SHORT)


def test_a_mark_outlives_the_copies_of_a_living_tasks_entry() -> None:
    assert LIVING.task == mark_lifetime(SHORT)
    assert LONG.task == mark_lifetime(LONG)


def test_what_lives_is_kept_for_many_turns_of_the_leader_and_longer_than_any_run() -> None:
    assert min(LIVING.task, LIVING.idempotency) >= 24 * timedelta(milliseconds=MAX_TIMEOUT_MS)
    assert LIVING.task >= LIVING.idempotency


def test_the_defaults_are_the_contracts() -> None:
    seconds = (
        Retention().task.total_seconds(),
        Retention().result.total_seconds(),
        Retention().idempotency.total_seconds(),
    )

    assert (604_800, 3_600, 86_400) == seconds
