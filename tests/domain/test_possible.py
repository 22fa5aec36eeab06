"""What no history of a task brings about; that each history brings about possible tasks is in tests/property."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from dtq.domain.possible import impossibility
from dtq.domain.status import TaskStatus
from dtq.domain.task import LeaseToken, Task, TaskId
from tests.domain.factories import BEGIN, LEASE, STATUSES, a_task

S = TaskStatus


@pytest.mark.parametrize("status", STATUSES)
def test_a_task_of_each_status_is_possible(status: TaskStatus) -> None:
    assert impossibility(a_task(status)) is None


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        (replace(a_task(), lease=LEASE), "a lease"),
        (replace(a_task(S.RUNNING), lease=None), "a lease"),
        (replace(a_task(), discarded=True), "only a dead letter"),
        (replace(a_task(), attempt=-1), "attempt -1"),
        (replace(a_task(S.RUNNING), attempt=4), "attempt 4"),
        (replace(a_task(S.RUNNING), attempt=0), "runs without"),
        (replace(a_task(), attempt=3), "waits for an attempt"),
        (replace(a_task(S.PENDING), attempt=3), "waits for an attempt"),
        (replace(a_task(S.RETRYING), attempt=3), "waits for an attempt"),
        (replace(a_task(), max_attempts=0), "attempts are allowed"),
        (replace(a_task(), max_attempts=101), "attempts are allowed"),
        (replace(a_task(), version=""), "no version"),
        (replace(a_task(), task_id=TaskId("x")), "its id"),
        (replace(a_task(), queue="a:b"), "no queue"),
        (replace(a_task(), priority=10), "no queue"),
        (replace(a_task(), priority=-1), "no queue"),
        (replace(a_task(), task_type="a b"), "its type"),
        (replace(a_task(), idempotency_key=" "), "its idempotency key"),
        (replace(a_task(), timeout=timedelta()), "its timeout"),
        (replace(a_task(), timeout=timedelta(hours=1, milliseconds=1)), "its timeout"),
        (replace(a_task(S.RUNNING), started_at=datetime.max.replace(tzinfo=UTC)), "end of time"),
        (replace(a_task(), ttl_at=BEGIN - timedelta(seconds=1)), "its time to live"),
        (replace(a_task(), ttl_at=BEGIN + timedelta(days=40_000)), "its time to live"),
        (replace(a_task(), previous_attempts_dropped=-1), "a count"),
        (replace(a_task(), previous_attempts_dropped=2**54), "a count"),
        (replace(a_task(TaskStatus.RUNNING), previous_attempts_dropped=2**54), "a count"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_task_that_no_step_brings_about_is_known_by_what_is_wrong(task: Task, reason: str) -> None:
    assert reason in (impossibility(task) or "")


@pytest.mark.parametrize("status", [S.SUCCEEDED, S.FAILED, S.DEAD_LETTERED, S.CANCELLED, S.RUNNING])
def test_the_last_attempt_may_run_and_end(status: TaskStatus) -> None:
    lease = LeaseToken("lease-3") if status is S.RUNNING else None

    assert impossibility(replace(a_task(status), attempt=3, lease=lease)) is None


def test_a_life_begun_again_counts_from_its_requeue() -> None:
    life = timedelta(days=36_500)
    task = replace(a_task(), requeued_at=BEGIN + life, ttl_at=BEGIN + 2 * life)

    assert impossibility(task) is None
