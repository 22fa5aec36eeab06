"""A task as people read it: a row for each of its members, and for each attempt of its life and of earlier ones."""

from collections.abc import Iterator
from typing import Final

import msgspec

from dtq.application.tasks import TaskView
from dtq.domain.admission import RESERVED_METADATA
from dtq.domain.outcome import UNKNOWN_TASK_TYPE
from dtq.domain.status import TaskStatus
from dtq.entrypoints.cli.output import members_of, plain
from dtq.entrypoints.views import TaskBody

HISTORY: Final = "history"

_OWN: Final = frozenset(RESERVED_METADATA)
"""What dtq remembers beside the client's metadata: programs find it there, people in rows of its own."""


def rows_of(body: TaskBody) -> list[tuple[str, str]]:
    """Return the names and texts of a task's rows."""
    rows: list[tuple[str, str]] = []
    members = members_of(body)
    metadata = msgspec.json.decode(members["metadata"], type=dict[str, msgspec.Raw])
    for name, value in members.items():
        if name == "metadata":
            theirs = {key: part for key, part in metadata.items() if key not in _OWN}
            rows.append((name, plain(value if len(theirs) == len(metadata) else msgspec.json.encode(theirs))))
        elif name != HISTORY:
            rows.append((name, plain(value)))
        if name == "status" and "discarded" in metadata:
            rows.append(("discarded", "yes"))
    if "previous_attempts_dropped" in metadata:
        dropped = plain(bytes(metadata["previous_attempts_dropped"]))
        rows.append((HISTORY, f"of earlier lives {dropped} more attempts, which are not kept"))
    earlier = metadata.get("previous_attempts", msgspec.Raw(b"[]"))
    rows += [(HISTORY, f"earlier life: {text}") for text in _attempts(bytes(earlier))]
    return rows + [(HISTORY, text) for text in _attempts(members.get(HISTORY, b"[]"))]


def advice_of(view: TaskView) -> Iterator[str]:
    """Say what can be done about a task that was given up."""
    task = view.task
    if task.status is not TaskStatus.DEAD_LETTERED or task.discarded:
        return
    if task.failure is not None and task.failure.error_class == UNKNOWN_TASK_TYPE:
        yield (
            f"the worker of queue {task.queue} that took this task knows no task type {task.task_type}; "
            "`dtq workers` shows which types each worker knows"
        )
    yield f"this is a dead letter; when its cause is removed, `dtq retry-dlq {task.task_id} --wait` lets it run again"


def _attempts(value: bytes) -> list[str]:
    attempts = msgspec.json.decode(value, type=list[dict[str, msgspec.Raw]])
    return [", ".join(f"{name} {plain(part)}" for name, part in members_of(attempt).items()) for attempt in attempts]
