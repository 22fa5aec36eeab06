"""The life of a task inside a worker: start, redeliver after a lost worker, finish in each outcome.

A delivery is the task's own only if its receipt is the one the task names; an execution is the task's own only while
the task names its lease.
"""

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dtq.domain.change import Change, Requirement
from dtq.domain.decision import Acknowledge, Drop, DropReason
from dtq.domain.entry import UNSTARTED
from dtq.domain.events import EventType, task_event
from dtq.domain.lifecycle import expire, is_expired
from dtq.domain.outcome import AttemptResult, Failed, Outcome, Succeeded, worker_lost
from dtq.domain.retry import RetryPolicy, delay_after
from dtq.domain.status import TERMINAL, TaskStatus
from dtq.domain.task import NO_VERSION, AttemptRecord, Failure, LeaseToken, Receipt, Task, Version, WorkerId

# named here, since to look up a member of an enumeration takes longer than to compare it
_QUEUED: Final = TaskStatus.QUEUED
_RUNNING: Final = TaskStatus.RUNNING
_SUCCEEDED: Final = TaskStatus.SUCCEEDED
_TASK_STARTED: Final = EventType.TASK_STARTED
_TASK_SUCCEEDED: Final = EventType.TASK_SUCCEEDED
_SUCCESS: Final = AttemptResult.SUCCESS
_ONLY_HELD: Final = (Requirement.HELD,)
_TO_START: Final = (Requirement.HELD, Requirement.UNPAUSED)


class Claim(Struct, frozen=True, kw_only=True):
    """Who wants to run a delivery, and the lease under which it would."""

    worker: WorkerId
    lease: LeaseToken
    receipt: Receipt


class FailurePolicy(Struct, frozen=True, kw_only=True):
    """What becomes of a failed attempt: when it is repeated, and where it goes when it is not."""

    retry: RetryPolicy = RetryPolicy()
    dead_letters: bool = True


def start(
    task: Task, *, claim: Claim, now: datetime, token: Version, policy: FailurePolicy
) -> Change | Acknowledge | Drop:
    """Decide what a delivered entry becomes; the order of the questions is part of the rule (ADR 8, 10, 11).

    A start counts an attempt and requires that the worker owns the entry and that the queue is not paused. A running
    task that is delivered again has lost its worker: that costs an attempt, and the last one is not run again.
    """
    if task.status in TERMINAL:
        return Acknowledge(absorbed=False)
    if task.receipt != claim.receipt:
        return Acknowledge(absorbed=True)
    if task.lease == claim.lease:
        return Drop(DropReason.ALREADY_MINE)
    if task.cancel_requested:
        return _end_cancelled(task, now=now, token=token, holder=claim.worker)
    if task.status is _QUEUED and is_expired(task, now=now):
        return expire(task, now=now, token=token, requires=_ONLY_HELD, holder=claim.worker)
    if task.status is _RUNNING and task.attempt >= task.max_attempts:
        return _give_up(task, worker_lost(), now=now, token=token, policy=policy, holder=claim.worker)
    return _run(task, claim=claim, now=now, token=token)


def start_unseen(task: Task, *, claim: Claim, now: datetime, token: Version) -> Change | None:
    """Decide the start of an entry that a worker takes without having seen its task (ADR 104).

    None where more is to be decided of it than that it waits for its first start: then it is started by ``start``.
    """
    waits = (task.status, task.attempt) == UNSTARTED and task.receipt == claim.receipt
    may_end = task.cancel_requested or task.ttl_at is not None
    # an idempotency record follows its task, unless it is another's
    is_alone = task.idempotency_key is None
    if not waits or may_end or not is_alone or max(task.created_at, task.available_at) > now:
        return None
    return _run(task, claim=claim, now=now, token=token)


def unseen_start(task: Task, *, token: Version) -> Change | None:
    """Return the start that was made of a task unseen, where its worker finds the task under its lease afterwards."""
    if task.lease is None or task.receipt is None or task.started_at is None or task.worker_id is None:
        return None
    status, attempt = UNSTARTED
    before = replace(
        task,
        status=status,
        attempt=attempt,
        started_at=None,
        worker_id=None,
        lease=None,
        cancel_requested=False,
        version=NO_VERSION,
    )
    claim = Claim(worker=task.worker_id, lease=task.lease, receipt=task.receipt)
    return _run(before, claim=claim, now=task.started_at, token=token)


def finish(
    task: Task,
    *,
    lease: LeaseToken,
    outcome: Outcome,
    now: datetime,
    token: Version,
    policy: FailurePolicy,
    jitter: float,
) -> Change | Drop:
    """Decide how an execution ends its task; one whose lease the task no longer names ends nothing.

    A requested cancellation wins over every outcome.
    """
    if task.lease != lease:
        return Drop(DropReason.STALE)
    if task.cancel_requested:
        return _end_cancelled(task, now=now, token=token, holder=None)
    if isinstance(outcome, Succeeded):
        return _succeed(task, outcome, now=now, token=token)
    if outcome.failure.retryable and task.attempt < task.max_attempts:
        return _retry(task, outcome, now=now, token=token, policy=policy, jitter=jitter)
    return _give_up(task, outcome, now=now, token=token, policy=policy, holder=None)


def _run(task: Task, *, claim: Claim, now: datetime, token: Version) -> Change:
    lost = worker_lost() if task.status is _RUNNING else None
    history = task.history
    if lost is not None:
        history += (_record(task, now=now, failure=lost.failure),)
    after = replace(
        task,
        status=_RUNNING,
        attempt=task.attempt + 1,
        started_at=now,
        worker_id=claim.worker,
        lease=claim.lease,
        history=history,
        finished_at=None,
        duration=None,
        failure=None,
        retry_delay=None,
        version=token,
    )
    metadata = None if lost is None else {"redelivered": True}
    event = task_event(after, kind=_TASK_STARTED, event_id=token, at=now, worker=claim.worker, metadata=metadata)
    return Change(
        before=task,
        after=after,
        at=now,
        event=event,
        requires=_TO_START,
        holder=claim.worker,
        attempt_result=None if lost is None else lost.kind,
    )


def _succeed(task: Task, outcome: Succeeded, *, now: datetime, token: Version) -> Change:
    after = _ended(task, status=_SUCCEEDED, outcome=outcome, now=now, token=token)
    kind, result, ran = _TASK_SUCCEEDED, outcome.result, outcome.ran
    return _finished(task, after, kind=kind, now=now, counts=_SUCCESS, result=result, ran=ran)


def _retry(
    task: Task, outcome: Failed, *, now: datetime, token: Version, policy: FailurePolicy, jitter: float
) -> Change:
    delay = delay_after(task.attempt, policy=policy.retry, jitter=jitter)
    after = _ended(task, status=TaskStatus.RETRYING, outcome=outcome, now=now, token=token, delay=delay)
    return _finished(task, after, kind=EventType.TASK_RETRY_SCHEDULED, now=now, counts=outcome.kind)


def _give_up(
    task: Task, outcome: Failed, *, now: datetime, token: Version, policy: FailurePolicy, holder: WorkerId | None
) -> Change:
    status = TaskStatus.DEAD_LETTERED if policy.dead_letters else TaskStatus.FAILED
    after = _ended(task, status=status, outcome=outcome, now=now, token=token)
    kind = EventType.TASK_DEAD_LETTERED if policy.dead_letters else EventType.TASK_FAILED
    return _finished(task, after, kind=kind, now=now, counts=outcome.kind, holder=holder)


def _end_cancelled(task: Task, *, now: datetime, token: Version, holder: WorkerId | None) -> Change:
    after = _ended(task, status=TaskStatus.CANCELLED, outcome=None, now=now, token=token)
    counts = None if task.lease is None else AttemptResult.ERROR
    return _finished(task, after, kind=EventType.TASK_CANCELLED, now=now, counts=counts, holder=holder)


def _ended(
    task: Task,
    *,
    status: TaskStatus,
    outcome: Outcome | None,
    now: datetime,
    token: Version,
    delay: timedelta | None = None,
) -> Task:
    """Close the attempt that was running: its record goes to the history, its lease and entry end."""
    failure = outcome.failure if isinstance(outcome, Failed) else None
    return replace(
        task,
        status=status,
        available_at=task.available_at if delay is None else now + delay,
        finished_at=now,
        duration=None if task.started_at is None else now - task.started_at,
        failure=task.failure if failure is None else failure,
        retry_delay=task.retry_delay if delay is None else delay,
        result_truncated=outcome.truncated if isinstance(outcome, Succeeded) else task.result_truncated,
        history=(*task.history, _record(task, now=now, failure=failure, delay=delay)),
        entry_id=None,
        lease=None,
        version=token,
    )


def _record(task: Task, *, now: datetime, failure: Failure | None, delay: timedelta | None = None) -> AttemptRecord:
    return AttemptRecord(
        attempt=task.attempt,
        started_at=task.started_at,
        finished_at=now,
        worker_id=task.worker_id,
        failure=failure,
        retry_delay=delay,
    )


def _finished(
    task: Task,
    after: Task,
    *,
    kind: EventType,
    now: datetime,
    counts: AttemptResult | None,
    holder: WorkerId | None = None,
    result: str | None = None,
    ran: timedelta | None = None,
) -> Change:
    event = task_event(after, kind=kind, event_id=after.version, at=now, worker=task.worker_id)
    return Change(
        before=task,
        after=after,
        at=now,
        event=event,
        requires=() if holder is None else _ONLY_HELD,
        holder=holder,
        result=result,
        attempt_result=counts,
        ran=ran,
    )
