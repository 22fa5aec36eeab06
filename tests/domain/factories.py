"""Tasks and their surroundings, as legal as the domain itself makes them; a test says only what matters to it."""

from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Final

from msgspec.structs import replace

from dtq.domain.admission import DEFAULT_QUEUE, AdmissionRules, TaskSpec
from dtq.domain.audit import Actor
from dtq.domain.delivery import Claim, FailurePolicy
from dtq.domain.retry import RetryPolicy
from dtq.domain.status import TaskStatus
from dtq.domain.task import (
    AttemptRecord,
    EntryId,
    Failure,
    LeaseToken,
    QueueName,
    Receipt,
    Task,
    TaskId,
    Version,
    WorkerId,
)

BEGIN: Final = datetime(2026, 11, 29, 12, tzinfo=UTC)
NOW: Final = BEGIN + timedelta(minutes=5)
TASK_ID: Final = TaskId("0123456789abcdef0123456789abcdef")
ENTRY: Final = EntryId("1796000000000-0")
DEAD_ENTRY: Final = EntryId("1796000000001-0")
WORKER: Final = WorkerId("worker-00000001")
OTHER_WORKER: Final = WorkerId("worker-00000002")
LEASE: Final = LeaseToken("lease-1")
NEW_LEASE: Final = LeaseToken("lease-2")
VERSION: Final = Version("version-1")
TOKEN: Final = Version("version-2")
OPERATOR: Final = Actor(name="cli:ann@host", request_id="request-1")
FAILURE: Final = Failure(error_class="ValueError", error_message="no", retryable=True)
POLICY: Final = FailurePolicy(retry=RetryPolicy(base=timedelta(seconds=1), maximum=timedelta(seconds=60), jitter=0.2))
RULES: Final = AdmissionRules(task_types={"echo_task"})

STATUSES: Final = tuple(TaskStatus)
PAIRS: Final = tuple(product(STATUSES, STATUSES))
ENDED: Final = (
    TaskStatus.SUCCEEDED,
    TaskStatus.FAILED,
    TaskStatus.DEAD_LETTERED,
    TaskStatus.CANCELLED,
    TaskStatus.EXPIRED,
)
ALIVE: Final = (TaskStatus.PENDING, TaskStatus.QUEUED, TaskStatus.RUNNING, TaskStatus.RETRYING)


def a_spec() -> TaskSpec:
    return TaskSpec(
        task_type="echo_task",
        payload='{"hello":"world"}',
        queue=DEFAULT_QUEUE,
        idempotency_key=None,
        max_attempts=3,
        priority=5,
        timeout=timedelta(seconds=30),
        delay=timedelta(),
        metadata="{}",
        ttl=None,
    )


def a_claim(*, lease: LeaseToken = NEW_LEASE, worker: WorkerId = OTHER_WORKER, entry_id: EntryId = ENTRY) -> Claim:
    return Claim(worker=worker, lease=lease, receipt=Receipt(DEFAULT_QUEUE, 5, entry_id))


def a_record(attempt: int) -> AttemptRecord:
    return AttemptRecord(
        attempt=attempt,
        started_at=BEGIN,
        finished_at=BEGIN + timedelta(seconds=attempt),
        worker_id=WORKER,
        failure=FAILURE,
    )


def a_task(status: TaskStatus = TaskStatus.QUEUED) -> Task:
    """A stored task of *status*, with the fields that it has then."""
    task = Task(
        task_id=TASK_ID,
        queue=QueueName("default"),
        task_type="echo_task",
        priority=5,
        max_attempts=3,
        timeout=timedelta(seconds=30),
        created_at=BEGIN,
        available_at=BEGIN,
        status=status,
        payload='{"hello":"world"}',
        version=VERSION,
    )
    match status:
        case TaskStatus.QUEUED:
            return replace(task, entry_id=ENTRY)
        case TaskStatus.RUNNING:
            return replace(task, attempt=1, started_at=BEGIN, worker_id=WORKER, lease=LEASE, entry_id=ENTRY)
        case TaskStatus.RETRYING | TaskStatus.FAILED | TaskStatus.DEAD_LETTERED:
            dlq_entry_id = DEAD_ENTRY if status is TaskStatus.DEAD_LETTERED else None
            return replace(_after_a_run(task), failure=FAILURE, history=(a_record(1),), dlq_entry_id=dlq_entry_id)
        case TaskStatus.SUCCEEDED:
            return _after_a_run(task)
        case TaskStatus.CANCELLED | TaskStatus.EXPIRED:
            return replace(task, finished_at=BEGIN)
        case TaskStatus.PENDING:
            return task


def _after_a_run(task: Task) -> Task:
    second = timedelta(seconds=1)
    return replace(task, attempt=1, started_at=BEGIN, finished_at=BEGIN + second, duration=second, worker_id=WORKER)
