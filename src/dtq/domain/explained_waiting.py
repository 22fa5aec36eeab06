"""Why a task that waits is not running: what keeps its queue, and what the schedule holds."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from dtq.domain.lifecycle import is_expired
from dtq.domain.phrases import counted, moment_text, span, tenths
from dtq.domain.reasons import Figure, Next, NextCode, Reason, ReasonCode
from dtq.domain.retention import LEAD_TERM
from dtq.domain.standing import Standing
from dtq.domain.status import TaskStatus
from dtq.domain.task import Task
from dtq.domain.timing import CLOCK_TOLERANCE, mistimed
from dtq.domain.workers import WorkerStatus
from dtq.domain.workforce import Workforce

_LONG_DUE: Final = 3 * LEAD_TERM
"""After which a due task is not merely waiting for the next look at the schedule, nor for the next leader."""

_BUSY_FIGURES: Final = ("slots", "taken")


def keeping_the_queue(task: Task, standing: Standing, *, workforce: Workforce) -> Iterator[Reason]:
    """Say what keeps every task of this queue and type from starting."""
    queue = task.queue
    if standing.paused:
        text = f"queue {queue} is paused, `dtq queue resume {queue}` ends that"
        yield Reason(code=ReasonCode.PAUSED, text=text, figures={"queue": queue})
    if not workforce.serving:
        text = f"no live worker serves queue {queue}, see `dtq workers`"
        yield Reason(
            code=ReasonCode.NO_WORKER, text=text, figures={"queue": queue, "live_workers": len(workforce.alive)}
        )
    elif not workforce.taking:
        yield _none_takes(queue, workforce)
    elif not workforce.knowing(task.task_type):
        number = len(workforce.taking)
        alone = f"the live worker of queue {queue} does not know task type {task.task_type}"
        several = f"none of the {number} live workers of queue {queue} knows task type {task.task_type}"
        yield Reason(
            code=ReasonCode.NO_WORKER_FOR_TYPE,
            text=f"{alone if number == 1 else several}, see `dtq workers`",
            figures={"queue": queue, "task_type": task.task_type, "workers": number},
        )


def once_resumed(workforce: Workforce) -> str:
    """Say what must come before a task of a paused queue is taken."""
    return f"once the queue is resumed{'' if workforce.taking else ' and a worker serves it'}"


def all_busy(workforce: Workforce) -> Iterator[Reason]:
    """Say that no worker of a queue has a free slot, as far as their heartbeats tell."""
    if workforce.taking and workforce.taken >= workforce.slots:
        yield Reason(
            code=ReasonCode.ALL_BUSY,
            text=(
                f"by their last heartbeats its workers are busy: {counted(len(workforce.taking), 'worker')}, "
                f"{workforce.taken} of {counted(workforce.slots, 'slot')} taken"
            ),
            figures={"workers": len(workforce.taking), "slots": workforce.slots, "taken": workforce.taken},
            about=_BUSY_FIGURES,
        )


def waiting_in_queue(
    task: Task, standing: Standing, *, workforce: Workforce, now: datetime
) -> tuple[list[Reason], Next]:
    """Explain a task whose entry nobody has read."""
    reasons = [*_ttl_over(task, now=now), *keeping_the_queue(task, standing, workforce=workforce)]
    reasons += [*all_busy(workforce), *_ahead(standing), *_type_not_everywhere(task, workforce)]
    if not any(reason.code is not ReasonCode.TYPE_NOT_EVERYWHERE for reason in reasons):
        reasons.insert(0, Reason(code=ReasonCode.NOTHING, text="nothing keeps it: a worker with a free slot is there"))
    return reasons, _next_in_queue(task, reasons, workforce=workforce, now=now)


def waiting_for_time(
    task: Task, standing: Standing, *, workforce: Workforce, now: datetime
) -> tuple[list[Reason], Next]:
    """Explain a task that is in the schedule, whose time has not come or has not been noticed."""
    is_due = task.available_at <= now
    first = _due(task, standing, workforce=workforce, now=now) if is_due else _scheduled(task, now=now)
    reasons = [first, *keeping_the_queue(task, standing, workforce=workforce)]
    if task.status is TaskStatus.PENDING and is_expired(task, now=max(now, task.available_at)):
        text = "its time to live is over by then: it ends as expired instead of starting"
        return reasons, Next(code=NextCode.EXPIRE, text=text)
    if first.code is ReasonCode.NO_LEADER:
        waits = f", where it waits {_until(standing, workforce)}" if standing.paused else ""
        text = f"the first worker that starts, of whatever queue, leads, and moves it to its queue{waits}"
        return reasons, Next(code=NextCode.START_WORKER, text=text)
    wrong = mistimed(task, due=standing.due, claimed_at=standing.claimed_at, now=now + CLOCK_TOLERANCE)
    if wrong is not None:
        text = f"not at its time: {wrong}; `dtq doctor --repair` schedules it again"
        return reasons, Next(code=NextCode.MEND, text=text)
    is_stuck = is_due and now - task.available_at > _LONG_DUE
    soon = "within about a second, or after what else is due," if is_due else "when it is due"
    when = "after what else is due, or once a worker leads (see `dtq doctor`)," if is_stuck else soon
    where = f"queue {task.queue}, priority {task.priority}, where it waits {_until(standing, workforce)}"
    return reasons, Next(code=NextCode.MOVE_WHEN_DUE, text=f"{when} the leader moves it to {where}")


def _until(standing: Standing, workforce: Workforce) -> str:
    what = (*(("is resumed",) if standing.paused else ()), *(() if workforce.taking else ("has a worker",)))
    return f"until the queue {' and '.join(what)}" if what else "for its turn"


def _none_takes(queue: str, workforce: Workforce) -> Reason:
    draining, starting = workforce.counted(WorkerStatus.DRAINING), workforce.counted(WorkerStatus.STARTING)
    figures: dict[str, Figure] = {"queue": queue, "draining": draining, "starting": starting}
    if starting:
        text = f"the live workers of queue {queue} are still starting: {starting}, and {draining} draining"
        return Reason(code=ReasonCode.WORKERS_STARTING, text=text, figures=figures)
    text = f"the live workers of queue {queue} are draining, and start nothing new: {draining}"
    return Reason(code=ReasonCode.WORKERS_DRAINING, text=text, figures=figures)


def _ttl_over(task: Task, *, now: datetime) -> Iterator[Reason]:
    if task.ttl_at is not None and is_expired(task, now=now):
        text = f"its time to live was over at {moment_text(task.ttl_at)}"
        yield Reason(code=ReasonCode.TTL_OVER, text=text, figures={"ttl_at": task.ttl_at})


def _ahead(standing: Standing) -> Iterator[Reason]:
    if not standing.above and not standing.before:
        return
    at_least = "" if standing.before_is_whole else "at least "
    uncounted = f"; priorities that cannot be read are not counted: {_listed(standing.spoiled)}"
    yield Reason(
        code=ReasonCode.AHEAD,
        text=(
            f"{standing.above} ahead of it in higher priorities, {at_least}{standing.before} in its own"
            f"{uncounted if standing.spoiled else ''}"
        ),
        figures={"above": standing.above, "before": standing.before},
        about=(*(("above",) if standing.spoiled else ()), *(() if standing.before_is_whole else ("before",))),
    )


def _type_not_everywhere(task: Task, workforce: Workforce) -> Iterator[Reason]:
    knowing, taking = workforce.knowing(task.task_type), len(workforce.taking)
    if 0 < knowing < taking:
        yield Reason(
            code=ReasonCode.TYPE_NOT_EVERYWHERE,
            text=(
                f"{taking - knowing} of the {taking} live workers of its queue "
                f"{'does' if taking - knowing == 1 else 'do'} not know task type {task.task_type}: "
                "one that takes it ends it as UnknownTaskType"
            ),
            figures={"task_type": task.task_type, "workers": taking, "knowing": knowing},
        )


def _next_in_queue(task: Task, reasons: Sequence[Reason], *, workforce: Workforce, now: datetime) -> Next:
    first = next(reason.code for reason in reasons if reason.code is not ReasonCode.TYPE_NOT_EVERYWHERE)
    match first:
        case ReasonCode.TTL_OVER:
            return Next(code=NextCode.EXPIRE, text="it ends as expired when a worker takes it, instead of starting")
        case ReasonCode.PAUSED:
            code, text = NextCode.RESUME, f"{once_resumed(workforce)}, {_once_it_is_taken(reasons)}"
        case ReasonCode.NO_WORKER | ReasonCode.WORKERS_DRAINING | ReasonCode.WORKERS_STARTING:
            code, text = NextCode.START_WORKER, "once a worker of its queue takes work, it starts when its turn comes"
        case ReasonCode.NO_WORKER_FOR_TYPE:
            code = NextCode.FAIL_UNKNOWN_TYPE
            text = (
                "the worker that takes it ends it as UnknownTaskType; to prevent that, "
                f"`dtq queue pause {task.queue}`, start a worker that knows the type, and stop the others"
            )
        case ReasonCode.ALL_BUSY:
            code, text = NextCode.WAIT_FOR_TURN, "it starts when a slot comes free and its turn has come"
        case ReasonCode.AHEAD:
            code, text = NextCode.WAIT_FOR_TURN, "it starts when what is ahead of it has been taken"
        case _:
            code, text = NextCode.START, "it starts within about a second"
    if task.ttl_at is not None and code is not NextCode.START:
        text += f"; not started by {moment_text(task.ttl_at)}, in {span(task.ttl_at - now)}, it expires"
    return Next(code=code, text=text)


def _once_it_is_taken(reasons: Sequence[Reason]) -> str:
    if any(reason.code is ReasonCode.NO_WORKER_FOR_TYPE for reason in reasons):
        return (
            "the worker that takes it ends it as UnknownTaskType; to prevent that, "
            "start a worker that knows the type before, and stop the others"
        )
    return "it starts when its turn comes"


def _scheduled(task: Task, *, now: datetime) -> Reason:
    left = task.available_at - now
    text = f"it may start at {moment_text(task.available_at)}, in {span(left)}"
    figures: dict[str, Figure] = {"due_at": task.available_at, "due_in_s": tenths(left)}
    if task.status is TaskStatus.PENDING:
        return Reason(code=ReasonCode.DELAYED, text=text, figures=figures)
    figures |= {"attempt": task.attempt + 1, "max_attempts": task.max_attempts}
    text += f", as attempt {task.attempt + 1} of {task.max_attempts}"
    if task.failure is not None:
        text += f"; the last one failed with {task.failure.error_class}"
        figures["error_class"] = task.failure.error_class
    return Reason(code=ReasonCode.RETRY, text=text, figures=figures)


def _due(task: Task, standing: Standing, *, workforce: Workforce, now: datetime) -> Reason:
    over = now - task.available_at
    figures: dict[str, Figure] = {"due_at": task.available_at, "due_since_s": tenths(over)}
    if not workforce.alive:
        text = f"it has been due for {span(over)}, and no worker lives that would move it to its queue"
        return Reason(code=ReasonCode.NO_LEADER, text=text, figures=figures)
    how = "the leader has taken it up" if standing.on_loan else "the leader has not come to it yet"
    return Reason(code=ReasonCode.DUE, text=f"it has been due for {span(over)}; {how}", figures=figures)


def _listed(priorities: Sequence[int]) -> str:
    return ", ".join(map(str, priorities))
