"""Checks of what a caller asks for, beside a task's own fields."""

from collections.abc import Sequence
from typing import Final

from dtq.domain.admission import QUEUE_PATTERN, TASK_ID_PATTERN
from dtq.domain.errors import FieldProblem, InvalidRequest, TaskNotFound
from dtq.domain.status import TaskStatus
from dtq.domain.task import QueueName, TaskId
from dtq.domain.text import clean

BESIDE_PAYLOAD_BYTES: Final = 65_536
"""How much larger than its payload a submission may be: metadata is bounded, but may be written with many blanks."""

MAX_LIMIT: Final = 500
"""The longest list that is handed out."""

_SHOWN: Final = 64


def known_task_id(text: str) -> TaskId:
    """Return *text* as a task id. Raises TaskNotFound where no task can have this id."""
    if not TASK_ID_PATTERN.fullmatch(text):
        raise TaskNotFound(clean(text, limit=_SHOWN))
    return TaskId(text)


def queue_problem(queue: str) -> FieldProblem | None:
    """Say what is wrong with the name of a queue, or None."""
    if QUEUE_PATTERN.fullmatch(queue):
        return None
    return FieldProblem("queue", f"must be text of the form {QUEUE_PATTERN.pattern}")


def status_problem(status: str) -> FieldProblem | None:
    """Say what is wrong with the name of a status, or None."""
    if status in TaskStatus.__members__.values():
        return None
    return FieldProblem("status", f"must be one of {', '.join(TaskStatus)}")


def limit_problem(limit: int) -> FieldProblem | None:
    """Say what is wrong with the length of a list, or None."""
    if 1 <= limit <= MAX_LIMIT:
        return None
    return FieldProblem("limit", f"must be an integer within 1..{MAX_LIMIT}")


def refuse(problems: Sequence[FieldProblem | None]) -> None:
    """Raise InvalidRequest with every problem there is; do nothing where there is none."""
    found = tuple(problem for problem in problems if problem is not None)
    if found:
        raise InvalidRequest(found)


def checked_queue(queue: str) -> QueueName:
    """Return *queue* as a queue's name. Raises InvalidRequest."""
    refuse([queue_problem(queue)])
    return QueueName(queue)
