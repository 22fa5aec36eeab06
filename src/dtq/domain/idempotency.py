"""Which logical task a repeated submission belongs to (contract section 5)."""

import json
from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct

from dtq.domain.change import Change
from dtq.domain.json_text import JsonProblem, parse
from dtq.domain.status import TERMINAL, TaskStatus
from dtq.domain.task import Task, TaskId

_ASKED: Final = ("task_type", "payload", "metadata", "priority", "max_attempts", "timeout")
"""What a submission asks for beside its queue, its key, and when it is to run."""

_JSON: Final = frozenset({"payload", "metadata"})
"""Those that are JSON text: white space, escapes and the order of members mean nothing in it."""


class RecordState(StrEnum):
    """What an idempotency record says about its task."""

    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"


class IdempotencyRecord(Struct, frozen=True, kw_only=True):
    """The value under an idempotency key. ``task_id`` comes first in its JSON, which adapters rely on."""

    task_id: TaskId
    state: RecordState
    updated_at: datetime


class Replay(Struct, frozen=True, kw_only=True):
    """The key's task has ended: answer with it. ``task`` is None where its record is gone already."""

    task_id: TaskId
    task: Task | None


class InProgress(Struct, frozen=True, kw_only=True):
    """The key's task is alive: refuse the submission and name the task."""

    task_id: TaskId
    status: TaskStatus


class TakeOver(Struct, frozen=True):
    """The record outlived a task that vanished: the new submission may replace it, if it is still the same."""


def state_of(status: TaskStatus) -> RecordState:
    """Return what the record says of a task in *status*."""
    if status is TaskStatus.SUCCEEDED:
        return RecordState.COMPLETED
    return RecordState.FAILED if status in TERMINAL else RecordState.PROCESSING


def record_of(change: Change) -> IdempotencyRecord | None:
    """Return the record that goes with *change*, or None where the task has no key."""
    if change.after.idempotency_key is None:
        return None
    return IdempotencyRecord(task_id=change.after.task_id, state=state_of(change.after.status), updated_at=change.at)


def answer(record: IdempotencyRecord | None, *, task: Task | None) -> Replay | InProgress | TakeOver:
    """Decide what a submission under a used key gets, from the record and the task it names as stored now.

    A record that nobody can read (None) names no task, and is taken over like one whose task vanished.
    """
    if record is None:
        return TakeOver()
    if task is not None and task.task_id != record.task_id:
        message = f"record of {record.task_id} was compared with task {task.task_id}"
        raise ValueError(message)
    if task is not None:
        return Replay(task_id=task.task_id, task=task) if task.is_terminal else _alive(task)
    if record.state is RecordState.PROCESSING:
        return TakeOver()
    return Replay(task_id=record.task_id, task=None)


def differences(task: Task, *, asked: Task) -> tuple[str, ...]:
    """Name what a repeated submission asks for in another way than the task that its key stands for, which it gets.

    JSON is compared by what a handler reads of it, not by how it is written.
    """
    return tuple(name for name in _ASKED if _differs(name, getattr(task, name), getattr(asked, name)))


def _differs(name: str, one: object, other: object) -> bool:
    if one == other:
        return False
    if name not in _JSON or not isinstance(one, str) or not isinstance(other, str):
        return True
    try:
        return _same_order(one) != _same_order(other)
    except JsonProblem:
        # somebody spoiled the stored text
        return True


def _same_order(text: str) -> str:
    """Write JSON anew, so that equal values are equal texts: as values, 1 and true would be equal too."""
    return json.dumps(parse(text), sort_keys=True)


def _alive(task: Task) -> InProgress:
    return InProgress(task_id=task.task_id, status=task.status)
