"""What a checker says, and how histories are read by task."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from msgspec import Struct

from dtq.domain.status import TaskStatus
from dtq.domain.task import Task, TaskId
from tests.simulation.history import Execution, History, Step


class Finding(Struct, frozen=True):
    """One thing that must not be."""

    checker: str
    task_id: str | None
    what: str

    def __str__(self) -> str:
        return f"{self.checker}: {self.what}" + (f" (task {self.task_id})" if self.task_id else "")


def steps_by_task(history: History) -> Mapping[TaskId, Sequence[Step]]:
    """The steps of each task, in order."""
    found: dict[TaskId, list[Step]] = defaultdict(list)
    for step in history.steps:
        found[step.after.task_id].append(step)
    return found


def is_start(step: Step) -> bool:
    """Whether a worker begins an attempt by this step."""
    lease_before = None if step.before is None else step.before.lease
    return step.after.lease is not None and step.after.lease != lease_before


def is_requeue(step: Step) -> bool:
    """Whether a new life begins."""
    return step.before is not None and step.before.is_terminal and not step.after.is_terminal


def start_of(execution: Execution, steps: Sequence[Step]) -> Step | None:
    """The step that allowed an execution: the last one of its worker and attempt before it."""
    found = None
    for step in steps:
        if step.at > execution.at:
            break
        if is_start(step) and step.who == execution.who and step.after.attempt == execution.attempt:
            found = step
    return found


def is_alive(task: Task) -> bool:
    """Whether the task has not ended."""
    return not task.is_terminal


def ended_running(step: Step) -> bool:
    """Whether an attempt ends by this step."""
    was_running = step.before is not None and step.before.status is TaskStatus.RUNNING
    return was_running and step.after.status is not TaskStatus.RUNNING
