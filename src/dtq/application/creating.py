"""How admitted submissions become tasks: sent together, each answered for itself, and sent again where that is safe."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Final, assert_never

from msgspec import Struct

from dtq.application.admitting import Fields, Given, admitted
from dtq.application.deadlines import Deadlines
from dtq.application.group_commit import GroupCommit
from dtq.application.patience import Patience
from dtq.application.refill import Refill
from dtq.application.rejections import tell_rejected
from dtq.domain import idempotency, lifecycle
from dtq.domain.admission import AdmissionRules, BrokerLimits, TaskSpec
from dtq.domain.change import Change
from dtq.domain.errors import (
    BrokerRefused,
    DtqError,
    IdempotencyInProgress,
    OutcomeUnknown,
    QueueFull,
    StepStopped,
)
from dtq.domain.task import Task, TaskId
from dtq.domain.text import text_of
from dtq.ports.answers import Admission, Already, Applied, Broken, Conflict, CreateAnswer, Full, KeyTaken
from dtq.ports.broker import Broker
from dtq.ports.environment import Clock, Ids
from dtq.ports.events import Observer

MAX_TRIES: Final = 5
"""How often a submission is sent again because its key was taken over by a rival, or because it stopped half-way."""

MAX_WAITING_BYTES: Final = 64 * 1024 * 1024
"""How much may wait for its turn while the broker is slow, of submissions and of cancellations each."""

RECORD_BYTES: Final = 1024
"""What a task weighs there beside its payload and metadata, which weigh a byte a character."""


ENOUGH_AHEAD: Final = 32
"""Of so many submissions that wait the next request is made at once: most often no more come before it is sent."""


class Submitted(Struct, frozen=True, kw_only=True):
    """An accepted submission. A duplicate stands for the task that its key belongs to, which may be gone (None)."""

    task_id: TaskId
    task: Task | None
    duplicate: bool


class _Begun(Struct, frozen=True):
    """A creation whose first try is on its way."""

    admission: Admission
    answer: "asyncio.Future[CreateAnswer]"


class Creating:
    """Brings tasks into being, or finds the ended ones that their idempotency keys stand for."""

    def __init__(
        self,
        broker: Broker,
        *,
        clock: Clock,
        deadlines: Deadlines,
        ids: Ids,
        observer: Observer,
        limits: BrokerLimits,
    ) -> None:
        self._broker = broker
        self._clock = clock
        self._deadlines = deadlines
        self._ids = ids
        self._observer = observer
        self._refill = Refill(clock)
        self._creates: GroupCommit[Admission, CreateAnswer] = GroupCommit(
            partial(broker.create, limits=limits),
            weigh=lambda admission: weight_of(admission.change),
            most=MAX_WAITING_BYTES,
            ahead=ENOUGH_AHEAD,
        )

    def one(self, spec: TaskSpec) -> Coroutine[None, None, Submitted]:
        """Create a task.

        Raises IdempotencyInProgress, QueueFull, BrokerUnavailable, or OutcomeUnknown where it may have come into being.
        """
        return self._create(self._admission(spec), self._patience())

    async def all(
        self, submissions: Sequence[Given], *, read: Callable[[Given], Fields], rules: AdmissionRules
    ) -> list[Submitted | DtqError]:
        """Create what up to 1,000 submissions ask for, each as if it came alone, and return errors as values.

        Each is asked for as soon as it is admitted: the broker makes the first ones while others are looked into.
        """
        asked: list[asyncio.Future[CreateAnswer]] = []

        def begin(spec: TaskSpec) -> _Begun:
            admission = self._admission(spec)
            asked.append(self._creates.ask(admission))
            return _Begun(admission, asked[-1])

        try:
            begun = await admitted(
                submissions, read=read, rules=rules, observer=self._observer, clock=self._clock, begin=begin
            )
        except BaseException:
            self._creates.forget(asked)
            raise
        self._creates.no_more()
        patience = self._patience()
        with patience.in_time(self._creates, asked):
            made = list[Submitted | DtqError | None]()
            for one in begun:
                if isinstance(one, _Begun) and not one.answer.done():
                    await asyncio.wait((one.answer,))
                made.append(self._at_once(one))
        # most are made by now, and need no task of asyncio's
        late = [
            self._created_or_error(one, patience)
            for one, answer in zip(begun, made, strict=True)
            if answer is None and isinstance(one, _Begun)
        ]
        answers = iter(await asyncio.gather(*late))
        return [next(answers) if answer is None else answer for answer in made]

    def _patience(self) -> Patience:
        return Patience(self._clock, deadlines=self._deadlines)

    def _admission(self, spec: TaskSpec) -> Admission:
        ids = self._ids
        return Admission(change=lifecycle.submit(spec, task_id=ids.task(), now=self._clock.now(), token=ids.token()))

    def _at_once(self, begun: _Begun | DtqError) -> Submitted | DtqError | None:
        """Return what has come of a first try that was made as it should; None where more is to be done."""
        if isinstance(begun, DtqError):
            return begun
        if begun.answer.exception() is not None:
            return None
        answer = begun.answer.result()
        return self._created(begun.admission.change, answer.task) if isinstance(answer, Applied) else None

    async def _create(
        self, admission: Admission, patience: Patience, *, asked: "asyncio.Future[CreateAnswer] | None" = None
    ) -> Submitted:
        change = admission.change
        may_be_half_done = False
        for _ in range(MAX_TRIES):
            try:
                found = await patience.write_among(self._creates, admission, begun=asked)
                answer = await self._understood(found, patience, change=change)
            except DtqError as error:
                if may_be_half_done:
                    # no refusal of a repeat takes back what an earlier try may have left
                    raise OutcomeUnknown(text_of(error)) from error
                raise
            if isinstance(answer, Submitted):
                return answer
            asked = None
            if isinstance(answer, KeyTaken):
                admission = Admission(change=change, replaces=answer.text)
            may_be_half_done |= isinstance(answer, Broken)
        failure = StepStopped if may_be_half_done else BrokerRefused
        raise failure(f"task {change.after.task_id} could not be created in {MAX_TRIES} tries")

    async def _understood(
        self, answer: CreateAnswer, patience: Patience, *, change: Change
    ) -> Submitted | KeyTaken | Broken:
        """Make of an answer what it means for the caller; a key that is returned may be taken over."""
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

    async def _created_or_error(self, begun: _Begun, patience: Patience) -> Submitted | DtqError:
        try:
            return await self._create(begun.admission, patience, asked=begun.answer)
        except DtqError as error:
            tell_rejected(error, queue=begun.admission.change.after.queue, observer=self._observer)
            return error


def weight_of(change: Change) -> int:
    """Return what a change weighs that waits for its turn."""
    return len(change.after.payload or "") + len(change.after.metadata) + RECORD_BYTES
