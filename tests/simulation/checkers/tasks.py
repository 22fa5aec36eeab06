"""C1 to C4 and C8: tasks come into being as they were asked for, move as the contract has it, and are not lost."""

from collections import defaultdict
from collections.abc import Iterator

from msgspec import json

from dtq.domain.idempotency import state_of
from dtq.domain.status import INITIAL, TERMINAL, is_legal
from dtq.domain.task import QueueName, Task, TaskId
from tests.simulation.checkers.finding import Finding, is_requeue, steps_by_task
from tests.simulation.history import History, Remains

UNCLEAR = frozenset({"", "Crashed", "OutcomeUnknown"})
"""Answers after which the task may or may not be there; without an answer, nobody knows either."""


def c1_conservation(history: History) -> Iterator[Finding]:
    """Each task that was answered for has one terminal status in the end."""
    remains = _remains(history)
    for submission in history.submissions:
        if submission.answer != "created" or submission.task_id is None:
            continue
        task = remains.tasks.get(submission.task_id)
        if task is None:
            yield Finding("C1", submission.task_id, f"it was answered for at {submission.at:.3f} s, and is lost")
        elif not task.is_terminal:
            yield Finding("C1", submission.task_id, f"it was answered for, and is {task.status} in the end")


def c2_no_phantom(history: History) -> Iterator[Finding]:
    """Each task was asked for: it was answered with, or its answer left that open; and there are no more of them."""
    made: dict[int, set[TaskId]] = defaultdict(set)
    for step in history.steps:
        if step.before is None:
            made[_number_of(step.after)].add(step.after.task_id)
    all_ids = {task_id for ids in made.values() for task_id in ids}
    for submission in history.submissions:
        if submission.answer == "created" and submission.task_id not in made[submission.number]:
            yield Finding("C2", submission.task_id, "it was answered with, and never made")
    for number, ids in made.items():
        asked = [one.answer for one in history.submissions if one.number == number]
        may_be = sum(answer == "created" or answer in UNCLEAR for answer in asked)
        if len(ids) > may_be:
            yield Finding("C2", min(ids), f"{len(ids)} tasks are there of submission {number}, answered by {asked}")
    for execution in history.executions:
        if execution.task_id not in all_ids:
            yield Finding("C2", execution.task_id, f"it was executed at {execution.at:.3f} s, and never made")


def c3_terminal_is_final(history: History) -> Iterator[Finding]:
    """Nothing but a requeue leads out of an end, and nothing but a discard happens there."""
    for step in history.steps:
        before, after = step.before, step.after
        if before is None or before.status not in TERMINAL:
            continue
        is_discard = after.discarded and not before.discarded and after.status is before.status
        if not is_discard and not (is_requeue(step) and is_legal(before.status, after.status)):
            yield Finding("C3", after.task_id, f"it had ended, and then: {step}")


def c4_only_contract_transitions(history: History) -> Iterator[Finding]:
    """Each step is in the table, and follows the step before it."""
    for task_id, steps in steps_by_task(history).items():
        previous: Task | None = None
        for step in steps:
            before, after = step.before, step.after
            is_known = history.wiped_at is not None or (before is None) == (previous is None)
            if not is_known or (before and previous and before.version != previous.version):
                yield Finding("C4", task_id, f"it does not follow the step before it: {step}")
            if not _is_in_table(before, after):
                yield Finding("C4", task_id, f"there is no such transition: {step}")
            previous = after


def c8_one_task_a_key(history: History) -> Iterator[Finding]:
    """One task has a key, whoever asks, and the record of the key says how that stands."""
    if history.wiped_at is not None:
        return
    made: dict[tuple[QueueName, str], set[TaskId]] = defaultdict(set)
    for step in history.steps:
        if step.before is None and step.after.idempotency_key is not None:
            made[step.after.queue, step.after.idempotency_key].add(step.after.task_id)
    for key, ids in made.items():
        if len(ids) > 1:
            yield Finding("C8", min(ids), f"{len(ids)} tasks have the key {key}")
    for submission in history.submissions:
        if submission.key is None or submission.task_id is None:
            continue
        if submission.task_id not in made[submission.queue, submission.key]:
            yield Finding("C8", submission.task_id, f"it does not have the key it was answered for: {submission}")
    yield from _records(history, made)


def _records(history: History, made: dict[tuple[QueueName, str], set[TaskId]]) -> Iterator[Finding]:
    remains = _remains(history)
    for key, ids in made.items():
        record, task = remains.keys.get(key), remains.tasks.get(min(ids))
        if record is None or record.task_id not in ids:
            yield Finding("C8", min(ids), f"the record of its key {key} is {record}")
        elif task is not None and record.state is not state_of(task.status):
            yield Finding("C8", min(ids), f"it is {task.status}, and the record of its key says {record.state}")


def _is_in_table(before: Task | None, after: Task) -> bool:
    if before is None:
        return after.status in INITIAL
    return before.status is after.status or is_legal(before.status, after.status)


def _number_of(task: Task) -> int:
    number: int = json.decode(task.payload or "{}")["n"]
    return number


def _remains(history: History) -> Remains:
    assert history.remains is not None
    return history.remains
