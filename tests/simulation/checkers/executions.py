"""C5, C6 and C15: handlers run as often as they may, not before they may, and what is recorded is what happened."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import timedelta

from msgspec import json

from dtq.domain.outcome import TIMEOUT, WORKER_LOST
from dtq.domain.status import TaskStatus
from dtq.domain.task import Task
from tests.simulation.checkers.finding import (
    Finding,
    ended_running,
    is_requeue,
    is_start,
    start_of,
    steps_by_task,
)
from tests.simulation.history import Execution, History, Step

ROUNDING = timedelta(milliseconds=1)
ORDERLY = frozenset({"DRAINED"})
RETRYABLE = frozenset({"RetryableError", TIMEOUT, WORKER_LOST})
ON_ITS_WAY = 8.0
"""After how many seconds nothing that was slow is under way any more."""

EVERYBODY = "everybody"
"""Whom a fault hits that hits all processes."""

HEARS_IN_TIME = timedelta(seconds=6.5)
"""A worker from which no more than one reply is lost finds out and comes back in less, and loses nothing by that."""

GIVEN_UP = frozenset({TIMEOUT, "CancelledError"})
"""What is recorded of a handler that did not end by itself."""


def c5_attempts(history: History) -> Iterator[Finding]:
    """Attempts rise one by one up to their limit, each is run once, and a lost one is somebody's fault."""
    by_task = steps_by_task(history)
    for task_id, steps in by_task.items():
        yield from _rising(steps)
        used: dict[str, Execution] = {}
        for execution in (one for one in history.executions if one.task_id == task_id):
            start = start_of(execution, steps)
            if start is None:
                yield Finding("C5", task_id, f"nobody had started it: {execution}")
            elif start.after.version in used:
                yield Finding("C5", task_id, f"one attempt is run twice: {used[start.after.version]}, {execution}")
            else:
                used[start.after.version] = execution
    yield from _redeliveries(history)


def _rising(steps: Sequence[Step]) -> Iterator[Finding]:
    expected = 0
    for step in steps:
        if is_requeue(step):
            expected = 0
        if not is_start(step):
            continue
        task, before = step.after, step.before
        expected += 1
        if task.attempt != expected or task.attempt > task.max_attempts:
            yield Finding("C5", task.task_id, f"attempt {expected} of {task.max_attempts} was due: {step}")
            expected = task.attempt
        if step.owner != task.worker_id:
            yield Finding("C5", task.task_id, f"its entry is {step.owner}'s: {step}")
        if before is not None and before.cancel_requested:
            yield Finding("C5", task.task_id, f"it was to be canceled, and is started: {step}")
        is_late = before is not None and before.ttl_at is not None and task.started_at is not None
        if is_late and before.status is TaskStatus.QUEUED and before.ttl_at <= task.started_at:  # type: ignore[union-attr, operator] # as is_late has it
            yield Finding("C5", task.task_id, f"its time to live had passed at {before.ttl_at}: {step}")  # type: ignore[union-attr] # as above


def _redeliveries(history: History) -> Iterator[Finding]:
    lost = []
    for steps in steps_by_task(history).values():
        start: Step | None = None
        for step in steps:
            if start is not None and _loses(step):
                lost.append(step)
                if not _is_excused(history, start, step):
                    yield Finding("C5", step.after.task_id, f"{start.who} lives, and lost it: {step}")
            start = step if is_start(step) else start
    exits = [one for one in history.exits if one.how not in ORDERLY]
    blocks = [one for one in history.executions if one.kind == "block"]
    most = (len(history.faults) + len(exits) + len(blocks)) * history.terms.concurrency
    if len(lost) > most:
        yield Finding("C5", lost[-1].after.task_id, f"{len(lost)} attempts were lost, and {most} could have been")


def _loses(step: Step) -> bool:
    return (is_start(step) and _was_running(step)) or (ended_running(step) and _is_lost(step.after))


def _spells(history: History, who: str) -> Iterator[tuple[float, float]]:
    """When something was wrong with *who*, and for how long what it sent then may still be on its way."""
    comes_back = history.terms.visibility > HEARS_IN_TIME
    for fault in history.faults:
        if fault.what.startswith("trap_unanswered at") and comes_back:
            continue
        if fault.whom in {who, EVERYBODY} and not fault.what.startswith("end of"):
            ends = (one.at for one in history.faults if one.whom == fault.whom and one.what == f"end of {fault.what}")
            yield fault.at, next((at for at in ends if at >= fault.at), float("inf")) + ON_ITS_WAY


def _is_excused(history: History, start: Step, step: Step) -> bool:
    """Whether something had happened to the worker of an attempt, or to everybody, before it was taken from it."""
    return (
        history.wiped_at is not None
        or any(at <= step.at and until >= start.at for at, until in _spells(history, start.who))
        or any(one.who == start.who and one.at <= step.at for one in history.exits)
        or any(one.who == start.who and one.kind == "block" for one in history.executions)
    )


def _was_running(step: Step) -> bool:
    return step.before is not None and step.before.status is TaskStatus.RUNNING


def _is_lost(task: Task) -> bool:
    return task.failure is not None and task.failure.error_class == WORKER_LOST


def c6_never_early(history: History) -> Iterator[Finding]:
    """Nothing is queued or started before it is due, and due is what was asked for or what the policy has."""
    delays = {one.task_id: one.delay for one in history.submissions if one.answer == "created"}
    for step in history.steps:
        task = step.after
        is_move = step.before is not None and step.before.status is not TaskStatus.RUNNING
        if is_move and task.status in {TaskStatus.QUEUED, TaskStatus.RUNNING} and step.clock < task.available_at:
            yield Finding("C6", task.task_id, f"it is not due before {task.available_at}, at {step.clock}: {step}")
        if step.before is None and task.task_id in delays:
            asked = delays[task.task_id]
            if not asked <= task.available_at - task.created_at <= asked + ROUNDING:
                yield Finding("C6", task.task_id, f"its delay is not the {asked} that was asked for: {step}")
        if ended_running(step) and task.status is TaskStatus.RETRYING:
            yield from _retry_delay(history, step)


def _retry_delay(history: History, step: Step) -> Iterator[Finding]:
    task, policy = step.after, history.terms.retry
    longest = min(policy.maximum, policy.base * 2 ** (task.attempt - 1))
    low, high = longest * (1 - policy.jitter) - ROUNDING, longest * (1 + policy.jitter) + ROUNDING
    assert task.finished_at is not None
    if not low <= task.available_at - task.finished_at <= high:
        yield Finding("C6", task.task_id, f"its retry is not due within {low} to {high}: {step}")


def c15_honest_outcomes(history: History) -> Iterator[Finding]:
    """What is recorded of an attempt is how its own execution ended, recorded by whoever ran it."""
    executions = defaultdict(list)
    for execution in history.executions:
        executions[execution.task_id].append(execution)
    for task_id, steps in steps_by_task(history).items():
        start: Step | None = None
        for step in steps:
            if ended_running(step):
                matching = [one for one in executions[task_id] if start is not None and start_of(one, steps) is start]
                yield from _outcome(history, step, start, matching[0] if matching else None)
            start = step if is_start(step) else start
    yield from _results(history)


def _outcome(history: History, step: Step, start: Step | None, execution: Execution | None) -> Iterator[Finding]:
    task, before = step.after, step.before
    assert before is not None
    if task.status is TaskStatus.CANCELLED:
        if not before.cancel_requested:
            yield Finding("C15", task.task_id, f"nobody had asked for this: {step}")
        return
    if _is_lost(task):
        if before.attempt < before.max_attempts:
            yield Finding("C15", task.task_id, f"a lost attempt that was not the last ends it: {step}")
        return
    if execution is None or start is None:
        yield Finding("C15", task.task_id, f"no execution is behind this: {step}")
        return
    if step.who != start.who:
        yield Finding("C15", task.task_id, f"{start.who} runs it, and another one records its end: {step}")
    ended_at = step.at if execution.ended_at is None else execution.ended_at
    if task.status is TaskStatus.SUCCEEDED:
        if execution.outcome != "ok" or ended_at > step.at:
            yield Finding("C15", task.task_id, f"its execution did not succeed: {execution}; {step}")
        return
    yield from _failure(history, step, start, execution)


def _failure(history: History, step: Step, start: Step, execution: Execution) -> Iterator[Finding]:
    task = step.after
    failure = task.failure
    if failure is None:
        yield Finding("C15", task.task_id, f"it failed for no reason: {step}")
        return
    # the deadline counts from the start, which a handler in a process that stands still begins late
    ran = step.at - start.at
    is_overdue = failure.error_class in GIVEN_UP and ran >= task.timeout.total_seconds() - 0.01
    if not is_overdue and failure.error_class != execution.outcome:
        yield Finding("C15", task.task_id, f"its failure {failure} is not that of {execution}")
    if not is_overdue and failure.error_class == "CancelledError":
        yield Finding("C15", task.task_id, f"it was stopped before its time, and that is recorded: {step}")
    if (failure.error_class in RETRYABLE) != failure.retryable and failure.error_class != "CancelledError":
        yield Finding("C15", task.task_id, f"whether this is worth a retry was judged wrong: {failure}")
    is_last = not failure.retryable or task.attempt >= task.max_attempts
    if is_last == (task.status is TaskStatus.RETRYING):
        yield Finding("C15", task.task_id, f"attempt {task.attempt} of {task.max_attempts}, {failure}: {step}")
    late = step.at - start.at - task.timeout.total_seconds()
    if history.terms.is_calm and late > 3.0 and not any(one.kind == "block" for one in history.executions):
        yield Finding("C15", task.task_id, f"it ran {late:.3f} s longer than it might: {step}")


def _results(history: History) -> Iterator[Finding]:
    assert history.remains is not None
    for task_id, task in history.remains.tasks.items():
        text = history.remains.results.get(task_id)
        if task.status is not TaskStatus.SUCCEEDED:
            continue
        expected = {"n": json.decode(task.payload or "")["n"], "attempt": task.attempt}
        if text is None or json.decode(text) != expected:
            yield Finding("C15", task_id, f"its result is {text}, not {expected}")
