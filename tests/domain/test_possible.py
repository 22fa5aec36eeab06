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
        (replace(a_task(S.RUNNING), attempt=0), "attempt is 0"),
        (replace(a_task(), attempt=3), "attempt is 3, the last"),
        (replace(a_task(S.PENDING), attempt=3), "attempt is 3, the last"),
        (replace(a_task(S.RETRYING), attempt=3), "attempt is 3, the last"),
        (replace(a_task(), max_attempts=0), "max_attempts is 0, not within 1..100"),
        (replace(a_task(), max_attempts=101), "max_attempts is 101, not"),
        (replace(a_task(), version=""), "version is missing"),
        (replace(a_task(), task_id=TaskId("x")), "task_id is"),
        (replace(a_task(), queue="a:b"), "queue is"),
        (replace(a_task(), priority=10), "priority is 10, not within 0..9"),
        (replace(a_task(), priority=-1), "priority is -1"),
        (replace(a_task(), task_type="a b"), "task_type is"),
        (replace(a_task(), idempotency_key=" "), "idempotency_key is"),
        (replace(a_task(), timeout=timedelta()), "timeout_ms is"),
        (replace(a_task(), timeout=timedelta(hours=1, milliseconds=1)), "timeout_ms is"),
        (replace(a_task(S.RUNNING), started_at=datetime.max.replace(tzinfo=UTC)), "started_at is"),
        (replace(a_task(), ttl_at=BEGIN - timedelta(seconds=1)), "ttl_at is"),
        (replace(a_task(), ttl_at=BEGIN + timedelta(days=40_000)), "ttl_at is"),
        (replace(a_task(), previous_attempts_dropped=-1), "previous_attempts_dropped is"),
        (replace(a_task(), previous_attempts_dropped=2**54), "previous_attempts_dropped is"),
        (replace(a_task(TaskStatus.RUNNING), previous_attempts_dropped=2**54), "previous_attempts_dropped is"),
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
