"""Decide, commit, and decide again from what is there: the one way in which a use case changes a task."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar, assert_never

from msgspec import Struct

from dtq.domain.change import Change
from dtq.domain.errors import BrokerRefused, BrokerUnavailable, OutcomeUnknown, StepStopped
from dtq.domain.task import Task
from dtq.domain.text import text_of
from dtq.ports.answers import Already, Applied, Broken, CommitAnswer, Conflict, Refused

MAX_DECISIONS: Final = 5
"""How often a step is decided anew because the task has moved."""

MAX_REPEATS: Final = 5
"""How often a step that stopped half-way is repeated under its token."""

Commit = Callable[[Change], Awaitable[CommitAnswer]]
NoChange = TypeVar("NoChange", bound=Struct)


class Settled(Struct, frozen=True, kw_only=True):
    """The change was made, by this call. ``task`` is the task as stored now, ``detached`` as in Applied."""

    change: Change
    task: Task
    detached: bool = False


class Vanished(Struct, frozen=True):
    """The task is not stored any more."""


class Step(Struct):
    """One step of a task, on its way to be made.

    ``change`` is what is to be committed next, None while that is to be decided, and ``task`` what to decide it on.
    """

    task: Task
    change: Change | None = None
    _decisions: int = 0
    _stops: int = 0

    def decided(self, change: Change) -> None:
        """Take *change* for what is to be committed."""
        self.change = change
        self._decisions += 1
        self._stops = 0

    def hear(self, answer: CommitAnswer, *, change: Change) -> Settled | Refused | Vanished | None:
        """Say what has become of the step by this answer to *change*, or None where there is more to do.

        Raises BrokerRefused where the task does not stand still for five decisions, and StepStopped where a change
        has stopped half-way five times.
        """
        match answer:
            case Applied(task=stored, detached=detached):
                return Settled(change=change, task=stored, detached=detached)
            case Already(task=stored):
                return Settled(change=change, task=change.after if stored is None else stored)
            case Conflict(task=Task() as found):
                if self._decisions == MAX_DECISIONS:
                    raise BrokerRefused(f"task {self.task.task_id} changes faster than a step can be decided")
                self.task, self.change = found, None
                return None
            case Conflict():
                return Vanished()
            case Refused():
                return answer
            case Broken():
                self._stops = _stopped_again(change, answer, times=self._stops)
                return None
            case _:
                assert_never(answer)


async def transact(
    task: Task, *, decide: Callable[[Task], Change | NoChange], commit: Commit
) -> Settled | Refused | Vanished | NoChange:
    """Make the step that *decide* finds right for the task, starting from *task*.

    What *decide* answers instead of a change is returned, as is a refused requirement. Raises BrokerRefused and
    StepStopped as Step does, and OutcomeUnknown where half of it may be done and the broker goes away.
    """
    step = Step(task)
    made: Settled | Refused | Vanished | None = None
    while made is None:
        change = decide(step.task)
        if not isinstance(change, Change):
            return change
        step.decided(change)
        made = step.hear(await commit_whole(change, commit=commit), change=change)
    return made


async def commit_whole(change: Change, *, commit: Commit) -> Applied | Already | Conflict | Refused:
    """Commit *change*, repeating it under its token while it stops half-way.

    Raises OutcomeUnknown where half of it may be done, also where the broker goes away before it can be repeated.
    """
    stops = 0
    while True:
        try:
            answer = await commit(change)
        except BrokerUnavailable as error:
            if stops == 0:
                raise
            raise OutcomeUnknown(text_of(error)) from error
        if not isinstance(answer, Broken):
            return answer
        stops = _stopped_again(change, answer, times=stops)


def _stopped_again(change: Change, answer: Broken, *, times: int) -> int:
    """Count one more time that a step stopped half-way; raises StepStopped where that is not to be repeated."""
    if times + 1 == MAX_REPEATS:
        task_id = change.after.task_id
        raise StepStopped(f"a step of task {task_id} stopped half-way {MAX_REPEATS} times: {answer.reason}")
    return times + 1
