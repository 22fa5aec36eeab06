"""What operators are shown of queues, workers, dead letters and the audit trail, by HTTP and on the command line."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from dtq.application.queues import QueueDetail
from dtq.application.tasks import TaskView
from dtq.application.workers import WorkerView
from dtq.domain.audit import AuditEntry
from dtq.domain.entry import LAST_MS, MALFORMED_ENTRY, moment
from dtq.domain.text import clean
from dtq.domain.workers import WorkerStatus
from dtq.entrypoints.views import TaskBody, full
from dtq.ports.dead_letters import DeadLetter
from dtq.ports.queues import QueueStats

Depth = Annotated[int, Meta(description="Exact: entries that wait or run; what waits is this less `pending`.")]
Pending = Annotated[int, Meta(description="Exact: entries that a worker has read, most of which run.")]
Paused = Annotated[bool, Meta(description="Exact: whether nothing new may start.")]
Scheduled = Annotated[
    int, Meta(description="Approximate if a record was evicted, exact otherwise: delayed tasks and retries.")
]
GlobalDeadLetters = Annotated[int, Meta(description="Exact, and of all queues together: there is one stream for all.")]
Active = Annotated[int, Meta(description="Approximate: workers of this queue whose heartbeat is not overdue.")]
BeatCount = Annotated[
    int | None, Meta(description="Approximate: as of the last heartbeat; null where that has expired.")
]
Liveness = Annotated[
    WorkerStatus, Meta(description="Approximate: what the age of the last heartbeat says; `stale` where it is overdue.")
]


class QueueBody(Struct, frozen=True, kw_only=True):
    """The figures of one queue, read in one step."""

    queue: str
    depth: Depth
    pending: Pending
    paused: Paused
    retry_scheduled: Scheduled


class QueueDetailBody(Struct, frozen=True, kw_only=True):
    """One queue, and what surrounds it."""

    queue: str
    depth: Depth
    pending: Pending
    paused: Paused
    retry_scheduled: Scheduled
    dlq_depth: GlobalDeadLetters
    workers_active: Active


class QueueList(Struct, frozen=True, kw_only=True):
    """Queues in alphabetical order."""

    queues: list[QueueBody]


class WorkerBody(Struct, frozen=True, kw_only=True):
    """A worker as its last heartbeat tells of it; where that has expired, only that it is stale."""

    worker_id: str
    status: Liveness
    queue: str | None
    hostname: str | None
    started_at: datetime | None
    last_heartbeat: datetime | None
    concurrency: int | None
    active_tasks: BeatCount
    tasks_processed: BeatCount
    tasks_failed: BeatCount
    tasks_retried: BeatCount
    task_types: list[str]
    visibility_timeout_s: float | None


class WorkerList(Struct, frozen=True, kw_only=True):
    """Workers in the order of their ids."""

    workers: list[WorkerBody]


class DeadLetterBody(Struct, frozen=True, kw_only=True):
    """A task that was given up. `malformed` tells of an entry that names no task which could be run."""

    entry_id: str
    malformed: bool
    task_id: str | None
    task_type: str
    original_queue: str
    failed_at: datetime | None
    attempts_made: int
    max_attempts: int
    last_error: str
    last_error_class: str
    retryable: bool
    worker_id: str | None
    task: TaskBody | UnsetType = UNSET


class DeadLetterList(Struct, frozen=True, kw_only=True):
    """Dead letters, the newest first."""

    dead_letters: list[DeadLetterBody]
    dlq_depth: Annotated[
        int, Meta(description="Approximate: every entry of the stream, read apart from the list, of all queues.")
    ]


class AuditBody(Struct, frozen=True, kw_only=True):
    """One act of an operator, done or refused."""

    actor: str
    action: str
    ts: datetime
    request_id: str
    outcome: Annotated[str, Meta(description="`done`, or the code of the refusal.")]
    task_id: str | None
    queue: str | None
    count: int | None
    subject: Annotated[str | None, Meta(description="What it was done to, where that is no task and no queue.")]


class AuditList(Struct, frozen=True, kw_only=True):
    """Acts, the newest first. About the last 10,000 are kept."""

    entries: list[AuditBody]


def queue_body(stats: QueueStats) -> QueueBody:
    """Show the figures of a queue."""
    return QueueBody(
        queue=stats.queue,
        depth=stats.depth,
        pending=stats.pending,
        paused=stats.paused,
        retry_scheduled=stats.retry_scheduled,
    )


def queue_detail(detail: QueueDetail) -> QueueDetailBody:
    """Show everything about a queue."""
    figures = msgspec.structs.asdict(queue_body(detail.stats))
    return QueueDetailBody(**figures, dlq_depth=detail.dead_letters, workers_active=detail.workers_active)


def worker_body(view: WorkerView) -> WorkerBody:
    """Show a worker."""
    beat = view.heartbeat
    return WorkerBody(
        worker_id=view.worker_id,
        status=view.status,
        queue=None if beat is None else beat.queue,
        hostname=None if beat is None else clean(beat.hostname),
        started_at=None if beat is None else beat.started_at,
        last_heartbeat=None if beat is None else beat.last_heartbeat,
        concurrency=None if beat is None else beat.concurrency,
        active_tasks=None if beat is None else beat.active_tasks,
        tasks_processed=None if beat is None else beat.tasks_processed,
        tasks_failed=None if beat is None else beat.tasks_failed,
        tasks_retried=None if beat is None else beat.tasks_retried,
        task_types=[] if beat is None else list(beat.task_types),
        visibility_timeout_s=None if beat is None else beat.visibility_timeout / timedelta(seconds=1),
    )


def dead_letter_body(letter: DeadLetter) -> DeadLetterBody:
    """Show a dead letter as it stands in a list."""
    fields = letter.fields
    failed_at = _number(fields, "failed_at_ms")
    return DeadLetterBody(
        entry_id=letter.entry_id,
        malformed=letter.task is None,
        task_id=_text(fields, "task_id") or None,
        task_type=_text(fields, "task_type"),
        original_queue=_text(fields, "original_queue"),
        failed_at=moment(failed_at) if 0 < failed_at <= LAST_MS else None,
        attempts_made=_number(fields, "attempts_made"),
        max_attempts=_number(fields, "max_attempts"),
        last_error=_text(fields, "last_error") or MALFORMED_ENTRY,
        last_error_class=_text(fields, "last_error_class") or MALFORMED_ENTRY,
        retryable=fields.get("retryable") == "1",
        worker_id=_text(fields, "worker_id") or None,
    )


def dead_letter_in_full(letter: DeadLetter) -> DeadLetterBody:
    """Show a dead letter with its task, payload and history included."""
    body = dead_letter_body(letter)
    if letter.task is None:
        return body
    view = TaskView(task=letter.task, result=None, result_expired=False)
    return msgspec.structs.replace(body, task=full(view))


def audit_list(entries: Sequence[AuditEntry]) -> AuditList:
    """Show acts as a list."""
    return AuditList(entries=[_audit_body(entry) for entry in entries])


def _audit_body(entry: AuditEntry) -> AuditBody:
    return AuditBody(
        actor=clean(entry.actor),
        action=entry.action,
        ts=entry.ts,
        request_id=clean(entry.request_id),
        outcome=entry.outcome,
        task_id=entry.task_id,
        queue=entry.queue,
        count=entry.count,
        subject=None if entry.subject is None else clean(entry.subject),
    )


def _text(fields: Mapping[str, str], name: str) -> str:
    return clean(fields.get(name, ""))


def _number(fields: Mapping[str, str], name: str) -> int:
    """Read a number that anybody may have written; 0 where it is none."""
    text = fields.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(LAST_MS)) else 0
