"""What a test is told of: every task, as this process last changed it."""

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from dtq.application.tasks import TaskView
from dtq.domain.change import Change
from dtq.domain.events import Event
from dtq.domain.status import TaskStatus
from dtq.domain.task import Task, TaskId
from dtq.entrypoints.client.direct import state_of
from dtq.entrypoints.client.results import TaskState

_FAILURES: Final = frozenset({TaskStatus.RETRYING, TaskStatus.FAILED, TaskStatus.DEAD_LETTERED})


class Recorder:
    """An observer that remembers each task, and in which order tasks ended; *on_failure* hears of failed attempts."""

    def __init__(self, on_failure: Callable[[Task], None]) -> None:
        self._on_failure = on_failure
        self._tasks: dict[TaskId, Task] = {}
        self.ended: list[TaskId] = []

    def committed(self, *changes: Change) -> None:
        """Take note of changes. A later one comes without the payload, which never changes."""
        for change in changes:
            task = change.after
            known = self._tasks.get(task.task_id)
            if task.payload is None and known is not None:
                task = replace(task, payload=known.payload)
            self._tasks[task.task_id] = task
            if task.is_terminal:
                self.ended.append(task.task_id)
            if task.status in _FAILURES:
                self._on_failure(task)

    def happened(self, event: Event) -> None:
        """Let an event that changes no task pass."""
        del event

    def noticed(self, what: str, **details: str | float | bool | None) -> None:
        """Let a notice pass: a test asks for what it wants to know."""
        del what, details

    def alive(self) -> list[TaskState]:
        """Return the tasks that have not ended, in the order of their submission."""
        views = (TaskView(task=task, result=None, result_expired=False) for task in self._tasks.values())
        return [state_of(view) for view in views if not view.task.is_terminal]
