"""Values for tests: a test names what matters to it, and gets sensible defaults for the rest."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final

from msgspec.structs import replace

from dtq.domain.admission import MAX_TTL_S, AdmissionRules, TaskSpec
from dtq.domain.audit import Actor, AuditEntry
from dtq.domain.change import Change
from dtq.domain.events import Event, EventType
from dtq.domain.lifecycle import submit
from dtq.domain.outcome import Failed, Succeeded, failed
from dtq.domain.status import TaskStatus
from dtq.domain.task import EntryId, Failure, LeaseToken, QueueName, Receipt, Task, TaskId, Version, WorkerId
from dtq.domain.workers import Heartbeat, WorkerStatus
from dtq.ports.answers import Admission

NOW: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
LAST: Final = datetime.max.replace(microsecond=0, tzinfo=UTC)
QUEUE: Final = QueueName("default")
TASK_TYPE: Final = "demo.echo"
WORKER: Final = WorkerId("worker-00000001")
OPERATOR: Final = Actor(name="operator", request_id="request-1")
RULES: Final = AdmissionRules(task_types=frozenset({TASK_TYPE}))

_NUMBERS = count(1)


def a_task_id() -> TaskId:
    """A task id that no other call gives."""
    return TaskId(f"{next(_NUMBERS):032x}")


def a_token() -> Version:
    """A token that no other call gives."""
    return Version(f"token-{next(_NUMBERS)}")


def a_lease() -> LeaseToken:
    """A lease that no other call gives."""
    return LeaseToken(f"lease-{next(_NUMBERS)}")


def a_submission(**fields: object) -> Mapping[str, object]:
    """What a client sends: the least that is admitted."""
    return {"task_type": TASK_TYPE, "payload": '{"n": 1}'} | fields


def a_spec(**changes: Any) -> TaskSpec:
    """A submission that was admitted, to run at once."""
    spec = TaskSpec(
        task_type=TASK_TYPE,
        payload='{"n": 1}',
        queue=QUEUE,
        idempotency_key=None,
        max_attempts=3,
        priority=5,
        timeout=timedelta(seconds=30),
        delay=timedelta(),
        metadata="{}",
        ttl=None,
    )
    return replace(spec, **changes)


def a_task(**changes: Any) -> Task:
    """A stored task that waits in its queue; in another status, with what that status needs."""
    task = Task(
        task_id=a_task_id(),
        queue=QUEUE,
        task_type=TASK_TYPE,
        priority=5,
        max_attempts=3,
        timeout=timedelta(seconds=30),
        created_at=NOW,
        available_at=NOW,
        status=TaskStatus.QUEUED,
        payload='{"n": 1}',
        version=a_token(),
    )
    status = changes.get("status", TaskStatus.QUEUED)
    return replace(task, **(_needs_of(status) | changes))


def made_possible(task: Task) -> Task:
    """Return *task*, made of any values whatever, with the least changed that keeps a stored task from being it."""
    is_running = task.status is TaskStatus.RUNNING
    highest = task.max_attempts if task.is_terminal or is_running else task.max_attempts - 1
    life = None if task.ttl_at is None else abs(task.ttl_at - task.created_at) % timedelta(seconds=MAX_TTL_S)
    begin = task.requeued_at or task.created_at
    return replace(
        task,
        attempt=max(int(is_running), min(task.attempt, highest)),
        lease=(task.lease or a_lease()) if is_running else None,
        discarded=task.discarded and task.status is TaskStatus.DEAD_LETTERED,
        ttl_at=None if life is None or begin > LAST - life else begin + life,
        started_at=None if task.started_at is None else min(task.started_at, LAST - timedelta(hours=1)),
    )


def _needs_of(status: TaskStatus) -> dict[str, object]:
    entry = {"entry_id": EntryId("1767268800000-0")}
    begun = {"attempt": 1, "started_at": NOW, "worker_id": WORKER}
    ended = {**begun, "finished_at": NOW + timedelta(seconds=1), "duration": timedelta(seconds=1)}
    match status:
        case TaskStatus.QUEUED:
            return {**entry}
        case TaskStatus.RUNNING:
            return {**entry, **begun, "lease": a_lease()}
        case TaskStatus.RETRYING:
            return {**ended, "failure": a_failure(), "retry_delay": timedelta(seconds=1)}
        case TaskStatus.FAILED:
            return {**ended, "failure": a_failure(retryable=False)}
        case TaskStatus.DEAD_LETTERED:
            return {**ended, "failure": a_failure(retryable=False), "dlq_entry_id": EntryId("1767268801000-0")}
        case TaskStatus.SUCCEEDED:
            return {**ended}
        case TaskStatus.CANCELLED | TaskStatus.EXPIRED:
            return {"finished_at": NOW + timedelta(seconds=1)}
        case TaskStatus.PENDING:
            return {"available_at": NOW + timedelta(minutes=1)}


def a_failure(**changes: Any) -> Failure:
    """Why an attempt failed, worth another one."""
    return replace(Failure(error_class="OSError", error_message="no route", retryable=True), **changes)


def a_receipt(**changes: Any) -> Receipt:
    """The address of an entry."""
    return replace(Receipt(QUEUE, 5, EntryId("1767268800000-0")), **changes)


def a_change(*, now: datetime = NOW, **spec: Any) -> Change:
    """The change that brings a task into being."""
    return submit(a_spec(**spec), task_id=a_task_id(), now=now, token=a_token())


def an_admission(*, now: datetime = NOW, replaces: str | None = None, **spec: Any) -> Admission:
    """A submission that is to be created."""
    return Admission(change=a_change(now=now, **spec), replaces=replaces)


def a_success(result: str | None = '{"ok": true}') -> Succeeded:
    """A handler that returned."""
    return Succeeded(result=result)


def a_fault(*, retryable: bool = True) -> Failed:
    """A handler that raised."""
    return failed("OSError", "no route", retryable=retryable)


def a_heartbeat(**changes: Any) -> Heartbeat:
    """The sign of life of a worker that is ready."""
    heartbeat = Heartbeat(
        worker_id=WORKER,
        hostname="host-1",
        started_at=NOW,
        last_heartbeat=NOW,
        queue=QUEUE,
        concurrency=4,
        status=WorkerStatus.READY,
    )
    return replace(heartbeat, **changes)


def an_event(**changes: Any) -> Event:
    """An event that belongs to no task."""
    event = Event(event_id=a_token(), ts=NOW, type=EventType.WORKER_STARTED, worker_id=WORKER, queue=QUEUE)
    return replace(event, **changes)


def an_audit_entry(**changes: Any) -> AuditEntry:
    """One administrative act."""
    entry = AuditEntry(actor="operator", action="queue.pause", ts=NOW, request_id="request-1", queue=QUEUE)
    return replace(entry, **changes)
