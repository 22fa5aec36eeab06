"""What clients do with tasks: submit, look, cancel."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import assert_never

from msgspec import Struct

from dtq.application.admitting import Fields, Given
from dtq.application.audit import AuditTrail
from dtq.application.creating import MAX_WAITING_BYTES, Creating, Submitted, weight_of
from dtq.application.deadlines import Deadlines
from dtq.application.group_commit import GroupCommit
from dtq.application.observers import Observers
from dtq.application.patience import Patience
from dtq.application.rejections import NOTICE, queue_named, tell_rejected
from dtq.application.requests import known_task_id, limit_problem, queue_problem, refuse, status_problem
from dtq.application.transact import Settled, Vanished, transact
from dtq.domain import lifecycle
from dtq.domain.admission import AdmissionRules, BrokerLimits, admit
from dtq.domain.audit import Actor
from dtq.domain.change import Change
from dtq.domain.decision import Drop, DropReason
from dtq.domain.errors import BrokerUnavailable, CancelRequested, DtqError, TaskNotFound, TaskTerminal
from dtq.domain.status import TaskStatus
from dtq.domain.task import QueueName, Task, TaskId
from dtq.domain.text import class_name
from dtq.ports.answers import CommitAnswer, Refused
from dtq.ports.broker import Broker, Recent
from dtq.ports.environment import Clock, Ids
from dtq.ports.events import Observer
from dtq.ports.workers import Signal, SignalKind, Signals


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
        deadlines = Deadlines(clock)
        self._creating = Creating(
            broker, clock=clock, deadlines=deadlines, ids=ids, observer=self._observer, limits=limits
        )
        self._commits: GroupCommit[Change, CommitAnswer] = GroupCommit(
            broker.commit, weigh=weight_of, most=MAX_WAITING_BYTES
        )
        self._listing = asyncio.Semaphore(1)

    async def submit(self, fields: Fields) -> Submitted:
        """Admit a task and bring it into being, or answer with the ended task that its idempotency key stands for.

        Raises InvalidTask, UnknownTaskType, PayloadTooLarge, IdempotencyInProgress, QueueFull, BrokerUnavailable, or
        OutcomeUnknown where the task may have come into being.
        """
        try:
            return await self._creating.one(admit(fields, rules=self._rules))
        except DtqError as error:
            tell_rejected(error, queue=queue_named(fields), observer=self._observer)
            raise

    async def submit_many(self, submissions: Sequence[Fields]) -> Sequence[Submitted | DtqError]:
        """Submit up to 1,000 tasks in a few requests; each gets the answer it would get alone, errors as values."""
        return await self.submit_each(submissions, read=_as_given)

    async def submit_each(
        self, submissions: Sequence[Given], *, read: Callable[[Given], Fields]
    ) -> Sequence[Submitted | DtqError]:
        """Submit what *read* makes of each of up to 1,000; a DtqError that it raises is the answer to that one."""
        return await self._creating.all(submissions, read=read, rules=self._rules)

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

    async def _settle_cancel(self, task: Task, *, by: Actor, patience: Patience) -> Settled:
        now = self._clock.now()

        def decide(found: Task) -> Change | _Uncancellable:
            decision = lifecycle.cancel(found, now=now, token=self._ids.token(), by=by)
            return _Uncancellable(found, decision.reason) if isinstance(decision, Drop) else decision

        async def commit(change: Change) -> CommitAnswer:
            return await patience.write_among(self._commits, change)

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


def _as_given(fields: Fields) -> Fields:
    return fields


class _Uncancellable(Struct, frozen=True):
    task: Task
    reason: DropReason
