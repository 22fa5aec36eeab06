"""What a test is told of: every task, as this process last changed it."""

import msgspec
from msgspec.structs import replace

from dtq.application.tasks import TaskView
from dtq.domain.change import Change
from dtq.domain.events import Event
from dtq.domain.task import Task, TaskId
from dtq.entrypoints.client.direct import state_of
from dtq.entrypoints.client.results import TaskState


class Recorder:
    """An observer that remembers each task, and in which order tasks ended."""

    def __init__(self) -> None:
        self._tasks: dict[TaskId, Task] = {}
        self.ended: list[TaskId] = []

    def committed(self, change: Change) -> None:
        """Take note of a change. A later one comes without the payload, which never changes."""
        task = change.after
        known = self._tasks.get(task.task_id)
        if task.payload is None and known is not None:
            task = replace(task, payload=known.payload)
        self._tasks[task.task_id] = task
        if task.is_terminal:
            self.ended.append(task.task_id)

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


def shown(task: TaskState) -> str:
    """Show a task in the message of a failed assertion."""
    return f"{task.task_type} {msgspec.json.encode(task.payload).decode()} in {task.queue} ({task.status})"
