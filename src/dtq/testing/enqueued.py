"""What waits in an app: found, and asserted."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from dtq.domain.errors import UnknownTaskType
from dtq.domain.json_text import written
from dtq.entrypoints.client.results import TaskState
from dtq.handlers.registry import Registry
from dtq.testing.recorder import Recorder

_SHOWN: Final = 10


class Enqueued:
    """The tasks that have not ended yet. Raises UnknownTaskType where it is asked for a type that nobody handles."""

    def __init__(self, recorder: Recorder, *, registry: Registry) -> None:
        self._recorder = recorder
        self._registry = registry

    def find(self, task_type: str | None, *, payload: Any, queue: str | None) -> list[TaskState]:
        """Return those that are as described, in the order of their submission."""
        if task_type is not None and task_type not in self._registry.task_types:
            unknown = UnknownTaskType(task_type)
            unknown.add_note(f"known here are: {', '.join(sorted(self._registry.task_types))}")
            raise unknown
        is_wanted = _any if payload is None else _compared(payload)
        return [
            task
            for task in self._recorder.alive()
            if task_type in {None, task.task_type} and queue in {None, task.queue} and is_wanted(task.payload)
        ]

    def require(self, task_type: str, *, payload: Any, queue: str | None, count: int | None) -> list[TaskState]:
        """Return those that are as described. Raises AssertionError unless there are *count*, or at least one."""
        found = self.find(task_type, payload=payload, queue=queue)
        if len(found) == count or (count is None and found):
            return found
        words = [task_type, "" if payload is None else repr(payload), "" if queue is None else f"in {queue}"]
        expected = "at least 1" if count is None else str(count)
        described = " ".join(filter(None, words))
        raise AssertionError(f"{len(found)} enqueued of {described}, expected {expected}; waiting are:\n{self._all()}")

    def _all(self) -> str:
        alive = self._recorder.alive()
        lines = "\n".join(f"  {_shown(task)}" for task in alive[:_SHOWN]) or "  nothing"
        return f"{lines}\n  and {len(alive) - _SHOWN} more" if len(alive) > _SHOWN else lines


def _any(_: object) -> bool:
    return True


def _compared(wanted: Any) -> Callable[[object], bool]:
    """Compare a Struct or a dataclass as what it is, defaults filled in; anything else as the JSON it is written as."""
    kind = type(wanted)
    if hasattr(kind, "__struct_fields__") or hasattr(kind, "__dataclass_fields__"):
        return lambda payload: _reads_as(wanted, payload)
    plain = msgspec.json.decode(written(wanted))
    return lambda payload: bool(payload == plain)


def _reads_as(wanted: Any, payload: object) -> bool:
    try:
        return bool(msgspec.convert(payload, type(wanted), str_keys=True) == wanted)
    except msgspec.ValidationError:
        return False


def _shown(task: TaskState) -> str:
    return f"{task.task_type} {msgspec.json.encode(task.payload).decode()} in {task.queue} ({task.status})"
