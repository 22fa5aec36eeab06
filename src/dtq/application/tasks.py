"""What clients do with tasks: submit, look, cancel."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, assert_never

from msgspec import Struct

from dtq.application.admitting import admitted
from dtq.application.audit import AuditTrail
from dtq.application.group_commit import GroupCommit
from dtq.application.observers import Observers
from dtq.application.patience import Patience
from dtq.application.refill import Refill
from dtq.application.rejections import NOTICE, Rejections
from dtq.application.requests import known_task_id, limit_problem, queue_problem, refuse, status_problem
from dtq.application.transact import Settled, Vanished, transact
from dtq.domain import idempotency, lifecycle
from dtq.domain.admission import AdmissionRules, BrokerLimits, TaskSpec, admit
from dtq.domain.audit import Actor
from dtq.domain.change import Change
from dtq.domain.decision import Drop, DropReason
from dtq.domain.errors import (
    BrokerRefused,
    BrokerUnavailable,
    CancelRequested,
    DtqError,
    IdempotencyInProgress,
    OutcomeUnknown,
    QueueFull,
    StepStopped,
    TaskNotFound,
    TaskTerminal,
)
from dtq.domain.status import TaskStatus
from dtq.domain.task import QueueName, Task, TaskId
from dtq.domain.text import class_name, text_of
from dtq.ports.answers import (
    Admission,
    Already,
    Applied,
    Broken,
    CommitAnswer,
    Conflict,
    CreateAnswer,
    Full,
    KeyTaken,
    Refused,
)
from dtq.ports.broker import Broker, Recent
from dtq.ports.environment import Clock, Ids
from dtq.ports.events import Observer
from dtq.ports.workers import Signal, SignalKind, Signals

MAX_TRIES: Final = 5
"""How often a submission is sent again because its key was taken over by a rival, or because it stopped half-way."""

MAX_WAITING_BYTES: Final = 64 * 1024 * 1024
"""How much may wait for its turn while the broker is slow, of submissions and of cancellations each."""

RECORD_BYTES: Final = 1024
"""What a task weighs there beside its payload and metadata, which weigh a byte a character."""


class Submitted(Struct, frozen=True, kw_only=True):
    """An accepted submission. A duplicate stands for the task that its key belongs to, which may be gone (None)."""

    task_id: TaskId
    task: Task | None
    duplicate: bool


class TaskView(Struct, frozen=True, kw_only=True):
    """A task with payload, and the JSON text of its result; ``result_expired`` where a result was kept once."""

    task: Task
    result: str | None
    result_expired: bool


class TaskService:
    """The use cases of tasks. Each answers within some 4 seconds, or raises BrokerUnavailable."""

    def __init__(
        self,
        broker: Broker,
        *,
        clock: Clock,
        ids: Ids,
        signals: Signals,
        trail: AuditTrail,
        observers: Sequence[Observer],
        rules: AdmissionRules,
        limits: BrokerLimits,
    ) -> None:
        self._broker = broker
        self._clock = clock
        self._ids = ids
        self._signals = signals
        self._trail = trail
        self._observer = Observers(observers)
        self._rules = rules
        self._refill = Refill(clock)
        self._creates: GroupCommit[Admission, CreateAnswer] = GroupCommit(
            partial(broker.create, limits=limits),
            weigh=lambda admission: _weight_of(admission.change),
            most=MAX_WAITING_BYTES,
        )
        self._commits: GroupCommit[Change, CommitAnswer] = GroupCommit(
            broker.commit, weigh=_weight_of, most=MAX_WAITING_BYTES
        )
        self._listing = asyncio.Semaphore(1)

    async def submit(self, fields: Mapping[str, object]) -> Submitted:
        """Admit a task and bring it into being, or answer with the ended task that its idempotency key stands for.

        Raises InvalidTask, UnknownTaskType, PayloadTooLarge, IdempotencyInProgress, QueueFull, BrokerUnavailable, or
        OutcomeUnknown where the task may have come into being.
        """
        with Rejections(self._observer, fields):
            return await self._create(admit(fields, rules=self._rules))

    async def submit_many(self, submissions: Sequence[Mapping[str, object]]) -> Sequence[Submitted | DtqError]:
        """Submit up to 1,000 tasks in a few requests; each gets the answer it would get alone, errors as values."""
        specs = await admitted(submissions, rules=self._rules, observer=self._observer, clock=self._clock)
        pairs = zip(specs, submissions, strict=True)
        return await asyncio.gather(*[self._created_or_error(spec, fields) for spec, fields in pairs])

    def rejected(self, reason: str) -> None:
        """Take note of a submission that was refused, for one of a few reasons, before it could be read."""
        self._observer.noticed(NOTICE, queue=None, reason=reason)

    async def get(self, task_id: str) -> TaskView:
        """Return a task with its result. Raises TaskNotFound."""
        patience = Patience(self._clock)
        task = await self._load(known_task_id(task_id), patience)
        if task.status is not TaskStatus.SUCCEEDED or task.result_truncated:
            return TaskView(task=task, result=None, result_expired=False)
        result = await patience.read(partial(self._broker.result, task.task_id))
        return TaskView(task=task, result=result, result_expired=result is None)

    async def recent(self, *, queue: str | None, status: str | None, limit: int) -> Recent:
        """Return up to *limit* (1..500) of the last tasks that match, newest first. Raises InvalidRequest."""
        problems = [
            None if queue is None else queue_problem(queue),
            None if status is None else status_problem(status),
            limit_problem(limit),
        ]
        refuse(problems)
        in_queue = None if queue is None else QueueName(queue)
        in_status = None if status is None else TaskStatus(status)
        return await Patience(self._clock).read(partial(self._recent, in_queue, in_status, limit))

    async def cancel(self, task_id: str, *, by: Actor) -> Task:
        """Cancel a waiting task and return it.

        Raises CancelRequested for a running one, each time, after its worker has been told; TaskTerminal for one that
        has ended; TaskNotFound. What is refused is audited.
        """
        patience = Patience(self._clock)
        async with self._trail.refusals("task.cancel", by=by, task_id=task_id):
            task = await self._load(known_task_id(task_id), patience)
            settled = await self._settle_cancel(task, by=by, patience=patience)
        if settled.change.after.status is TaskStatus.RUNNING:
            await self._tell_worker(settled.change.after, patience)
            raise CancelRequested(task.task_id)
        return settled.task

    async def _create(self, spec: TaskSpec) -> Submitted:
        change = lifecycle.submit(spec, task_id=self._ids.task(), now=self._clock.now(), token=self._ids.token())
        patience = Patience(self._clock)
        replaces: str | None = None
        may_be_half_done = False
        for _ in range(MAX_TRIES):
            try:
                answer = await self._try(Admission(change=change, replaces=replaces), patience)
            except DtqError as error:
                if may_be_half_done:
                    # no refusal of a repeat takes back what an earlier try may have left
                    raise OutcomeUnknown(text_of(error)) from error
                raise
            if isinstance(answer, Submitted):
                return answer
            replaces = answer.text if isinstance(answer, KeyTaken) else replaces
            may_be_half_done |= isinstance(answer, Broken)
        failure = StepStopped if may_be_half_done else BrokerRefused
        raise failure(f"task {change.after.task_id} could not be created in {MAX_TRIES} tries")

    async def _try(self, admission: Admission, patience: Patience) -> Submitted | KeyTaken | Broken:
        """Send a creation once; a key that is answered may be taken over."""
        change = admission.change
        answer = await patience.write(partial(self._creates.one, admission))
        match answer:
            case Applied(task=stored):
                return self._created(change, stored)
            case Already(task=stored) | Conflict(task=stored):
                # the reply of an earlier try was lost: nobody else knows this task's id
                return self._created(change, change.after if stored is None else stored)
            case KeyTaken():
                return await self._duplicate_of(answer, patience, asked=change.after) or answer
            case Full(reason=reason, value=value, limit=limit):
                wait = self._refill.refused(answer, queue=change.after.queue)
                raise QueueFull(reason, value=value, limit=limit, retry_after_s=wait)
            case Broken():
                return answer
            case _:
                assert_never(answer)

    async def _settle_cancel(self, task: Task, *, by: Actor, patience: Patience) -> Settled:
        now = self._clock.now()

        def decide(found: Task) -> Change | _Uncancellable:
            decision = lifecycle.cancel(found, now=now, token=self._ids.token(), by=by)
            return _Uncancellable(found, decision.reason) if isinstance(decision, Drop) else decision

        async def commit(change: Change) -> CommitAnswer:
            return await patience.write(partial(self._commits.one, change))

        answer = await transact(task, decide=decide, commit=commit)
        match answer:
            case Settled(change=change):
                self._observer.committed(change)
                return answer
            case _Uncancellable(task=found, reason=DropReason.ALREADY_REQUESTED):
                await self._tell_worker(found, patience)
                raise CancelRequested(found.task_id)
            case _Uncancellable(task=found):
                raise TaskTerminal(found.task_id, status=found.status)
            case Vanished() | Refused():
                raise TaskNotFound(task.task_id)
            case _:
                assert_never(answer)

    def _created(self, change: Change, task: Task) -> Submitted:
        self._observer.committed(change)
        self._refill.admitted(task.queue)
        return Submitted(task_id=task.task_id, task=task, duplicate=False)

    async def _duplicate_of(self, taken: KeyTaken, patience: Patience, *, asked: Task) -> Submitted | None:
        """Answer for the task that has the key; None where the key may be taken over."""
        if taken.record is None:
            self._observer.noticed("idempotency_record_unreadable", queue=asked.queue)
            holder = None
        else:
            holder = await patience.read(partial(self._broker.load, taken.record.task_id))
        other = () if holder is None else idempotency.differences(holder, asked=asked)
        if holder is not None and other:
            fields, task_id = ", ".join(other), holder.task_id
            self._observer.noticed("idempotency_key_reused", task_id=task_id, queue=asked.queue, differs=fields)
        answer = idempotency.answer(taken.record, task=holder)
        match answer:
            case idempotency.Replay():
                return Submitted(task_id=answer.task_id, task=answer.task, duplicate=True)
            case idempotency.InProgress():
                raise IdempotencyInProgress(answer.task_id, status=answer.status)
            case idempotency.TakeOver():
                return None
            case _:
                assert_never(answer)

    async def _created_or_error(self, spec: TaskSpec | DtqError, fields: Mapping[str, object]) -> Submitted | DtqError:
        if isinstance(spec, DtqError):
            return spec
        try:
            with Rejections(self._observer, fields):
                return await self._create(spec)
        except DtqError as error:
            return error

    async def _load(self, task_id: TaskId, patience: Patience) -> Task:
        task = await patience.read(partial(self._broker.load, task_id))
        if task is None:
            raise TaskNotFound(task_id)
        return task

    async def _recent(self, queue: QueueName | None, status: TaskStatus | None, limit: int) -> Recent:
        # a rare status reads thousands of records: one such scan at a time leaves the broker to the workers
        async with self._listing:
            return await self._broker.recent(queue=queue, status=status, limit=limit)

    async def _tell_worker(self, running: Task, patience: Patience) -> None:
        """Let the worker of a task hear at once that it is to be cancelled; its beat finds out anyway."""
        if running.worker_id is None:
            return
        try:
            signal = Signal(kind=SignalKind.CANCEL, task_id=running.task_id)
            await patience.once(partial(self._signals.tell_worker, running.worker_id, signal))
        except BrokerUnavailable as error:
            self._observer.noticed("signal_lost", kind=SignalKind.CANCEL, error=class_name(error))


def _weight_of(change: Change) -> int:
    return len(change.after.payload or "") + len(change.after.metadata) + RECORD_BYTES


class _Uncancellable(Struct, frozen=True):
    task: Task
    reason: DropReason
