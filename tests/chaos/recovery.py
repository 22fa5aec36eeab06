"""How long it took after each fault until all went on."""

from bisect import bisect_left
from collections.abc import Sequence

from dtq.domain.status import TaskStatus
from dtq.domain.task import Task, TaskId
from tests.chaos.run import Outcome
from tests.chaos.strike import EVERYBODY, Strike
from tests.simulation.checkers.finding import is_start
from tests.simulation.history import History


def recoveries(outcome: Outcome) -> list[tuple[Strike, float]]:
    """How many seconds after the end of each fault all that it had struck had gone on.

    That is: whatever attempt its victims were running was ended or begun again, some attempt has begun anywhere, and
    some submission was answered with 202. What happened before the end of the fault has taken no time.
    """
    history = outcome.history
    starts = sorted(step.at for step in history.steps if is_start(step))
    answered = sorted(one.ended_at for one in history.submissions if one.answer == "created" and one.ended_at)
    found = []
    for strike in outcome.strikes:
        over = strike.at if strike.fault.kind.endswith("_kill") or strike.ended_at is None else strike.ended_at
        moments = [_next(starts, over), _next(answered, over), *_resumed(history, strike)]
        found.append((strike, max(0.0, *(one - over for one in moments if one is not None))))
    return found


def _next(moments: Sequence[float], after: float) -> float | None:
    at = bisect_left(moments, after)
    return moments[at] if at < len(moments) else None


def _resumed(history: History, strike: Strike) -> list[float]:
    """When each attempt that a victim was running at the time was ended or begun again."""
    running: dict[TaskId, Task] = {}
    found = []
    for step in history.steps:
        task = step.after
        if step.at <= strike.at:
            if task.status is TaskStatus.RUNNING and strike.whom in {EVERYBODY, task.worker_id}:
                running[task.task_id] = task
            else:
                running.pop(task.task_id, None)
        elif task.task_id in running and task.lease != running[task.task_id].lease:
            del running[task.task_id]
            found.append(step.at)
    return found
