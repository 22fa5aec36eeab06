"""The life of a task outside a worker: submit, promote, cancel, requeue, discard, purge, and a home for orphans.

Each function answers with the one legal step, or with the reason why there is none. ``now`` is the broker's time,
``token`` the new version that the step is known by; it is random and never used twice.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from dtq.domain.admission import TaskSpec
from dtq.domain.audit import Actor, AuditEntry, audited
from dtq.domain.change import Change, Requirement
from dtq.domain.decision import Drop, DropReason
from dtq.domain.events import EventType, task_event
from dtq.domain.status import WAITING_FOR_TIME, Place, TaskStatus
from dtq.domain.task import EntryId, Task, TaskId, Version, WorkerId, place_of

KEPT_PREVIOUS_ATTEMPTS: Final = 20
"""How many attempt records of earlier lives a requeued task carries along."""


def submit(spec: TaskSpec, *, task_id: TaskId, now: datetime, token: Version) -> Change:
    """Bring a task into being: queued, or pending where it is delayed."""
    delayed = bool(spec.delay)
    task = Task(
        task_id=task_id,
        queue=spec.queue,
        task_type=spec.task_type,
        priority=spec.priority,
        max_attempts=spec.max_attempts,
        timeout=spec.timeout,
        created_at=now,
        available_at=now + spec.delay if delayed else now,
        status=TaskStatus.PENDING if delayed else TaskStatus.QUEUED,
        payload=spec.payload,
        metadata=spec.metadata,
        idempotency_key=spec.idempotency_key,
        ttl_at=None if spec.ttl is None else now + spec.ttl,
        version=token,
    )
    event = None if delayed else task_event(task, kind=EventType.TASK_QUEUED, event_id=token, at=now)
    return Change(before=None, after=task, at=now, event=event)


def promote(task: Task, *, now: datetime, token: Version) -> Change | Drop:
    """Move a due task to its queue; a delayed one past its time to live expires instead.

    A task that another leader has promoted may have run, failed and be waiting again: it is not due now.
    """
    if task.status not in WAITING_FOR_TIME:
        return Drop(DropReason.NOT_WAITING)
    if task.available_at > now:
        return Drop(DropReason.NOT_DUE)
    if task.status is TaskStatus.PENDING and is_expired(task, now=now):
        return expire(task, now=now, token=token)
    kind = EventType.TASK_QUEUED if task.status is TaskStatus.PENDING else EventType.TASK_RETRIED
    return _step(replace(task, status=TaskStatus.QUEUED, entry_id=None), kind=kind, before=task, now=now, token=token)


def is_expired(task: Task, *, now: datetime) -> bool:
    """Tell whether the task's time to live has passed."""
    return task.ttl_at is not None and task.ttl_at <= now


def expire(
    task: Task, *, now: datetime, token: Version, requires: tuple[Requirement, ...] = (), holder: WorkerId | None = None
) -> Change:
    """End a task whose time to live passed before it ran."""
    after = replace(task, status=TaskStatus.EXPIRED, finished_at=now, entry_id=None)
    event = EventType.TASK_EXPIRED
    return _step(after, kind=event, before=task, now=now, token=token, requires=requires, holder=holder)


def cancel(task: Task, *, now: datetime, token: Version, by: Actor) -> Change | Drop:
    """Cancel a waiting task at once; ask for the cancellation of a running one."""
    if task.is_terminal:
        return Drop(DropReason.ENDED)
    if task.status is not TaskStatus.RUNNING:
        audit = audited("task.cancel", by=by, at=now, task_id=task.task_id, queue=task.queue)
        return _cancelled(task, now=now, token=token, audit=audit)
    if task.cancel_requested:
        return Drop(DropReason.ALREADY_REQUESTED)
    audit = audited("task.cancel_requested", by=by, at=now, task_id=task.task_id, queue=task.queue)
    after = replace(task, cancel_requested=True)
    kind = EventType.TASK_CANCEL_REQUESTED
    return _step(after, kind=kind, before=task, now=now, token=token, audit=audit)


def purge(task: Task, *, now: datetime, token: Version, audit: AuditEntry | None = None) -> Change | Drop:
    """Cancel a queued task that no worker has read, as part of emptying its queue."""
    if task.status is not TaskStatus.QUEUED:
        return Drop(DropReason.MOVED)
    requires = (Requirement.UNDELIVERED,)
    return _cancelled(task, now=now, token=token, audit=audit, requires=requires, metadata={"purged": True})


def requeue(task: Task, *, now: datetime, token: Version, by: Actor) -> Change | Drop:
    """Start a new life of a dead letter: attempt 0, its history kept as previous attempts."""
    refusal = _not_a_dead_letter(task)
    if refusal is not None:
        return refusal
    attempts = task.previous_attempts + task.history
    time_to_live = None if task.ttl_at is None else task.ttl_at - (task.requeued_at or task.created_at)
    after = replace(
        task,
        status=TaskStatus.QUEUED,
        attempt=0,
        available_at=now,
        requeued_at=now,
        ttl_at=None if time_to_live is None else now + time_to_live,
        previous_attempts=attempts[-KEPT_PREVIOUS_ATTEMPTS:],
        previous_attempts_dropped=task.previous_attempts_dropped + max(0, len(attempts) - KEPT_PREVIOUS_ATTEMPTS),
        history=(),
        started_at=None,
        finished_at=None,
        duration=None,
        worker_id=None,
        failure=None,
        retry_delay=None,
        cancel_requested=False,
        result_truncated=False,
        entry_id=None,
        dlq_entry_id=None,
    )
    return _step(
        after,
        kind=EventType.TASK_QUEUED,
        before=task,
        now=now,
        token=token,
        requires=(Requirement.IN_DEAD_LETTERS,),
        audit=audited("dlq.requeue", by=by, at=now, task_id=task.task_id, queue=task.queue),
        metadata={"requeued": True},
    )


def discard(task: Task, *, now: datetime, token: Version, by: Actor) -> Change | Drop:
    """Take a dead letter out of the stream; its record stays dead-lettered and says so."""
    refusal = _not_a_dead_letter(task)
    if refusal is not None:
        return refusal
    return Change(
        before=task,
        after=replace(task, discarded=True, dlq_entry_id=None, version=token),
        at=now,
        requires=(Requirement.IN_DEAD_LETTERS,),
        audit=audited("dlq.discard", by=by, at=now, task_id=task.task_id, queue=task.queue),
    )


def rehome(task: Task, *, now: datetime, token: Version, audit: AuditEntry | None = None) -> Change | Drop:
    """Give a live task a place again that lost it to foul play; its status and attempts stay."""
    if task.is_terminal:
        return Drop(DropReason.ENDED)
    after = replace(task, entry_id=None, version=token)
    return Change(before=task, after=after, at=now, requires=(Requirement.HOMELESS,), audit=audit)


def reenter(task: Task, *, now: datetime, token: Version, audit: AuditEntry) -> Change | Drop:
    """Give a waiting task another entry in place of its own, from which foul play has taken something."""
    if place_of(task) is not Place.READY:
        return Drop(DropReason.NOT_WAITING)
    return Change(before=task, after=replace(task, entry_id=None, version=token), at=now, audit=audit)


def reschedule(task: Task, *, now: datetime, token: Version, audit: AuditEntry) -> Change | Drop:
    """Let a task that waits for its time be promoted at that time, which foul play had put off."""
    if place_of(task) is not Place.SCHEDULE:
        return Drop(DropReason.NOT_WAITING)
    return Change(before=task, after=replace(task, version=token), at=now, audit=audit)


def restore(rebuilt: Task, *, now: datetime, token: Version, audit: AuditEntry) -> Change:
    """Store a task that was rebuilt from its entry, as a worker that gets the entry would."""
    return Change(before=rebuilt, after=replace(rebuilt, version=token), at=now, audit=audit)


def rebury(task: Task, *, now: datetime, token: Version, audit: AuditEntry) -> Change | Drop:
    """Give a dead-lettered task its dead letter again, which it lost to foul play."""
    refusal = _not_a_dead_letter(task)
    if refusal is not None:
        return refusal
    after = replace(task, dlq_entry_id=None, version=token)
    return Change(before=task, after=after, at=now, requires=(Requirement.HOMELESS,), audit=audit)


def name_again(task: Task, *, letter: EntryId, now: datetime, token: Version, audit: AuditEntry) -> Change | Drop:
    """Let a dead-lettered task's record name its dead letter again, whose name it lost to foul play."""
    refusal = _not_a_dead_letter(task)
    if refusal is not None:
        return refusal
    return Change(before=task, after=replace(task, dlq_entry_id=letter, version=token), at=now, audit=audit)


def _not_a_dead_letter(task: Task) -> Drop | None:
    if task.status is not TaskStatus.DEAD_LETTERED:
        return Drop(DropReason.NOT_DEAD)
    return Drop(DropReason.DISCARDED) if task.discarded else None


def _cancelled(
    task: Task,
    *,
    now: datetime,
    token: Version,
    audit: AuditEntry | None,
    requires: tuple[Requirement, ...] = (),
    metadata: Mapping[str, bool] | None = None,
) -> Change:
    after = replace(task, status=TaskStatus.CANCELLED, finished_at=now, entry_id=None)
    kind = EventType.TASK_CANCELLED
    return _step(after, kind=kind, before=task, now=now, token=token, requires=requires, audit=audit, metadata=metadata)


def _step(
    after: Task,
    *,
    kind: EventType,
    before: Task,
    now: datetime,
    token: Version,
    requires: tuple[Requirement, ...] = (),
    holder: WorkerId | None = None,
    audit: AuditEntry | None = None,
    metadata: Mapping[str, bool] | None = None,
) -> Change:
    event = task_event(after, kind=kind, event_id=token, at=now, metadata=metadata)
    after = replace(after, version=token)
    return Change(before=before, after=after, at=now, event=event, requires=requires, holder=holder, audit=audit)
