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


async def transact(
    task: Task, *, decide: Callable[[Task], Change | NoChange], commit: Commit
) -> Settled | Refused | Vanished | NoChange:
    """Make the step that *decide* finds right for the task, starting from *task*.

    What *decide* answers instead of a change is returned, as is a refused requirement. Raises BrokerRefused where
    the task does not stand still for five decisions.
    """
    for _ in range(MAX_DECISIONS):
        change = decide(task)
        if not isinstance(change, Change):
            return change
        answer = await commit_whole(change, commit=commit)
        match answer:
            case Applied(task=stored, detached=detached):
                return Settled(change=change, task=stored, detached=detached)
            case Already(task=stored):
                return Settled(change=change, task=change.after if stored is None else stored)
            case Conflict(task=found):
                if found is None:
                    return Vanished()
                task = found
            case Refused():
                return answer
            case _:
                assert_never(answer)
    raise BrokerRefused(f"task {task.task_id} changes faster than a step can be decided")


async def commit_whole(change: Change, *, commit: Commit) -> Applied | Already | Conflict | Refused:
    """Commit *change*, repeating it under its token while it stops half-way.

    Raises OutcomeUnknown where half of it may be done, also where the broker goes away before it can be repeated.
    """
    reason = ""
    for repeat in range(MAX_REPEATS):
        try:
            answer = await commit(change)
        except BrokerUnavailable as error:
            if repeat == 0:
                raise
            raise OutcomeUnknown(text_of(error)) from error
        if not isinstance(answer, Broken):
            return answer
        reason = answer.reason
    raise StepStopped(f"a step of task {change.after.task_id} stopped half-way {MAX_REPEATS} times: {reason}")
