"""What operators do with dead letters: look, requeue, discard, purge."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from dtq.application.audit import AuditTrail
from dtq.application.observers import Observers
from dtq.application.patience import Patience
from dtq.application.requests import known_task_id, limit_problem, refuse
from dtq.application.transact import Settled, Vanished, transact
from dtq.domain.audit import Actor, audited
from dtq.domain.change import Change
from dtq.domain.decision import Drop, DropReason
from dtq.domain.errors import (
    DeadLetterDiscarded,
    FieldProblem,
    InvalidRequest,
    NotDeadLettered,
    NotInDeadLetters,
    TaskNotFound,
)
from dtq.domain.lifecycle import discard, requeue
from dtq.domain.task import Task, TaskId
from dtq.ports.answers import CommitAnswer, Refused
from dtq.ports.broker import TaskStore
from dtq.ports.dead_letters import DeadLetter, DeadLetters
from dtq.ports.environment import Clock, Ids
from dtq.ports.events import Observer

Decide = Callable[[Task], Change | Drop]


class Requeued(Struct, frozen=True, kw_only=True):
    """A task that lives again; ``is_detached`` where its idempotency key stands for another task now, or for none."""

    task: Task
    is_detached: bool


class _Undone(Struct, frozen=True):
    task: Task
    reason: DropReason


class DeadLetterService:
    """The use cases of dead letters. Each answers within some 4 seconds, or raises BrokerUnavailable."""

    def __init__(
        self,
        dead_letters: DeadLetters,
        *,
        store: TaskStore,
        clock: Clock,
        ids: Ids,
        trail: AuditTrail,
        observers: Sequence[Observer],
    ) -> None:
        self._dead_letters = dead_letters
        self._store = store
        self._clock = clock
        self._ids = ids
        self._trail = trail
        self._observer = Observers(observers)

    async def recent(self, *, limit: int) -> Sequence[DeadLetter]:
        """Return up to *limit* (1..500) dead letters, newest first. Raises InvalidRequest."""
        refuse([limit_problem(limit)])
        return await Patience(self._clock).read(partial(self._dead_letters.recent, limit=limit))

    async def count(self) -> int:
        """Return how many dead letters there are."""
        return await Patience(self._clock).read(self._dead_letters.count)

    async def get(self, task_id: str) -> DeadLetter:
        """Return the dead letter of a task. Raises TaskNotFound or NotInDeadLetters."""
        return await self._letter(known_task_id(task_id), Patience(self._clock))

    async def requeue(self, task_id: str, *, by: Actor) -> Requeued:
        """Start a new life of a dead-lettered task; one whose record is gone is made from its letter.

        Raises TaskNotFound, NotDeadLettered, DeadLetterDiscarded, or NotInDeadLetters. What is refused is audited.
        """
        now = self._clock.now()

        def decide(task: Task) -> Change | Drop:
            return requeue(task, now=now, token=self._ids.token(), by=by)

        async with self._trail.refusals("dlq.requeue", by=by, task_id=task_id):
            settled = await self._settle(known_task_id(task_id), decide)
        if settled.detached:
            self._observer.noticed("idempotency_detached", task_id=task_id, queue=settled.task.queue)
        return Requeued(task=settled.task, is_detached=settled.detached)

    async def discard(self, task_id: str, *, by: Actor) -> Task:
        """Take a dead letter out of the stream and return its task, which stays dead-lettered.

        Raises TaskNotFound, NotDeadLettered, DeadLetterDiscarded, or NotInDeadLetters. What is refused is audited.
        """
        now = self._clock.now()

        def decide(task: Task) -> Change | Drop:
            return discard(task, now=now, token=self._ids.token(), by=by)

        async with self._trail.refusals("dlq.discard", by=by, task_id=task_id):
            return (await self._settle(known_task_id(task_id), decide)).task

    async def purge(self, *, by: Actor) -> int:
        """Remove every dead letter and return how many; the records of their tasks stay."""
        audit = audited("dlq.purge", by=by, at=self._clock.now())
        purged = await Patience(self._clock).once(partial(self._dead_letters.purge, audit=audit))
        self._trail.tell(replace(audit, count=purged))
        return purged

    async def _letter(self, task_id: TaskId, patience: Patience) -> DeadLetter:
        letter = await patience.read(partial(self._dead_letters.get, task_id))
        if letter is None:
            raise NotInDeadLetters(task_id)
        return letter

    async def _settle(self, task_id: TaskId, decide: Decide) -> Settled:
        patience = Patience(self._clock)
        task = await self._found(task_id, patience)

        def decide_on_same(found: Task) -> Change | _Undone:
            # bound to the letter first seen: what died again meanwhile is another matter, which nobody has looked at
            is_same = found.discarded or found.dlq_entry_id == task.dlq_entry_id
            decision = decide(found) if is_same else Drop(DropReason.NOT_DEAD)
            return _Undone(found, decision.reason) if isinstance(decision, Drop) else decision

        async def commit(change: Change) -> CommitAnswer:
            (answer,) = await patience.write(partial(self._store.commit, [change]))
            return answer

        answer = await transact(task, decide=decide_on_same, commit=commit)
        match answer:
            case Settled():
                self._observer.committed(answer.change)
                return answer
            case _Undone(task=found, reason=DropReason.DISCARDED):
                raise DeadLetterDiscarded(found.task_id)
            case _Undone(task=found):
                raise NotDeadLettered(found.task_id, status=found.status)
            case Refused() | Vanished():
                raise NotInDeadLetters(task_id)
            case _:
                assert_never(answer)

    async def _found(self, task_id: TaskId, patience: Patience) -> Task:
        """Return the stored task, or the one that its dead letter still tells of."""
        task = await patience.read(partial(self._store.load, task_id))
        if task is not None:
            return task
        letter = await patience.read(partial(self._dead_letters.get, task_id))
        if letter is None:
            raise TaskNotFound(task_id)
        if letter.task is None:
            raise InvalidRequest((FieldProblem("task_id", "names a malformed dead letter, which can only be purged"),))
        return letter.task
