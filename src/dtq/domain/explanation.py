"""Why a task is not running, and what happens next: decided from what was found, without asking anybody."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from dtq.domain.explained_held import held
from dtq.domain.explained_waiting import keeping_the_queue, waiting_for_time, waiting_in_queue
from dtq.domain.phrases import moment_text, span, tenths
from dtq.domain.reasons import Explanation, Figure, Next, NextCode, Reason, ReasonCode
from dtq.domain.standing import Standing
from dtq.domain.status import WAITING_FOR_TIME, TaskStatus
from dtq.domain.task import Task
from dtq.domain.workers import Heartbeat
from dtq.domain.workforce import Workforce, workforce_of


class Facts(Struct, frozen=True, kw_only=True):
    """What an explanation is made from: where the task stands, and every sign of life that is stored.

    ``handed_back`` is how long an entry has been idle, at least, that its worker handed back.
    """

    standing: Standing
    heartbeats: Sequence[Heartbeat]
    heartbeat_interval: timedelta
    handed_back: timedelta
    now: datetime


def explain(facts: Facts) -> Explanation:
    """Say why a task is not running, what keeps it most first, and what happens next; never nothing."""
    task = facts.standing.task
    reasons, following = _unreadable(facts.standing) if task is None else _explained(task, facts)
    return Explanation(task=task, at=facts.now, reasons=reasons, next=following)


def _explained(task: Task, facts: Facts) -> tuple[list[Reason], Next]:
    standing, now = facts.standing, facts.now
    if task.is_terminal:
        return [_ended(task)], _after_the_end(task, standing)
    workforce = workforce_of(task.queue, facts.heartbeats, now=now, interval=facts.heartbeat_interval)
    if task.status not in WAITING_FOR_TIME and task.priority in standing.spoiled:
        return _in_a_spoiled_priority(task, standing, workforce=workforce)
    if not standing.is_home:
        return _homeless(task, standing, workforce=workforce)
    if task.status in WAITING_FOR_TIME:
        return waiting_for_time(task, standing, workforce=workforce, now=now)
    if standing.holding is None and task.status is TaskStatus.QUEUED:
        return waiting_in_queue(task, standing, workforce=workforce, now=now)
    return held(task, standing, workforce=workforce, now=now, handed_back=facts.handed_back)


def _unreadable(standing: Standing) -> tuple[list[Reason], Next]:
    reason = Reason(code=ReasonCode.RECORD_UNREADABLE, text=standing.unreadable)
    text = "no worker runs it and nobody drops it; once its record is mended, it goes on: see `dtq doctor`"
    return [reason], Next(code=NextCode.MEND, text=text)


def _homeless(task: Task, standing: Standing, *, workforce: Workforce) -> tuple[list[Reason], Next]:
    place = "the schedule" if task.status in WAITING_FOR_TIME else f"its stream, {task.queue} p{task.priority}"
    reason = Reason(code=ReasonCode.HOMELESS, text=f"it is {task.status} by its record, and {place} does not hold it")
    reasons = [reason, *keeping_the_queue(task, standing, workforce=workforce)]
    if workforce.alive:
        text = "the leader gives it a place again within ten minutes; `dtq doctor --repair` does at once"
    else:
        text = (
            "no worker lives that could lead and give it a place again: start one, or let `dtq doctor --repair` do it"
        )
    return reasons, Next(code=NextCode.REHOME, text=text)


def _in_a_spoiled_priority(task: Task, standing: Standing, *, workforce: Workforce) -> tuple[list[Reason], Next]:
    reason = Reason(
        code=ReasonCode.PRIORITY_UNREADABLE,
        text=f"priority {task.priority} of queue {task.queue} cannot be read: a key of another type is in its place",
        figures={"queue": task.queue, "priority": task.priority},
    )
    text = "no worker gets anything from there until that key is gone: see `dtq doctor`"
    return [reason, *keeping_the_queue(task, standing, workforce=workforce)], Next(code=NextCode.MEND, text=text)


def _ended(task: Task) -> Reason:
    at = "" if task.finished_at is None else f" at {moment_text(task.finished_at)}"
    when_canceled = _attempt(task) if task.cancel_requested else _before_start(task)
    text = {
        TaskStatus.SUCCEEDED: f"it succeeded{at}, {_attempt(task)}",
        TaskStatus.CANCELLED: f"it was canceled{at}, {when_canceled}",
        TaskStatus.EXPIRED: f"it expired{at}: its time to live was over {_before_start(task)}",
    }.get(task.status, f"it was given up{at}, {_attempt(task)}{_why_given_up(task)}")
    figures: dict[str, Figure] = {"attempt": task.attempt, "max_attempts": task.max_attempts}
    if task.finished_at is not None:
        figures["finished_at"] = task.finished_at
    if task.worker_id is not None:
        figures["worker_id"] = task.worker_id
    if task.duration is not None:
        figures["took_s"] = tenths(task.duration)
    if task.failure is not None:
        figures["error_class"] = task.failure.error_class
    return Reason(code=ReasonCode.ENDED, text=text, figures=figures)


def _before_start(task: Task) -> str:
    # one that waited for another attempt has been started before
    what = f"attempt {task.attempt + 1} of {task.max_attempts}" if task.attempt else "it"
    return f"before {what} was started"


def _attempt(task: Task) -> str:
    took = "" if task.duration is None else f" after {span(task.duration)}"
    where = "" if task.worker_id is None else f" on {task.worker_id}"
    return f"in attempt {task.attempt} of {task.max_attempts}{where}{took}"


def _why_given_up(task: Task) -> str:
    if task.failure is None:
        return ""
    why = "which was its last attempt" if task.failure.retryable else "which is not worth another attempt"
    return f": {task.failure.error_class}, {why}"


def _after_the_end(task: Task, standing: Standing) -> Next:
    task_id = task.task_id
    again = "to have it done, submit it again, under another idempotency key if it had one"
    if task.status is TaskStatus.SUCCEEDED:
        return Next(code=NextCode.NOTHING, text=f"nothing; `dtq get {task_id}` shows its result while that is kept")
    if task.status is not TaskStatus.DEAD_LETTERED:
        return Next(code=NextCode.SUBMIT_AGAIN, text=f"nothing; {again}")
    if task.discarded:
        return Next(code=NextCode.SUBMIT_AGAIN, text=f"nothing: its dead letter was discarded; {again}")
    if not standing.is_home:
        text = f"nothing: its dead letter is gone, purged or trimmed; {again}"
        return Next(code=NextCode.SUBMIT_AGAIN, text=text)
    text = (
        f"nothing by itself; when its cause is removed, `dtq retry-dlq {task_id}` lets it run again, "
        f"`dtq discard-dlq {task_id}` gives it up; `dtq get {task_id}` shows each attempt"
    )
    return Next(code=NextCode.REQUEUE, text=text)
