"""The harm that a test may do to the memory adapter, which otherwise never fails."""

from typing import Final

from dtq.domain.errors import BrokerOutOfMemory, OutcomeUnknown, RecordUnreadable
from dtq.domain.task import QueueName, TaskId

GARBLED: Final = "garbled"
"""What stands under an idempotency key whose record somebody spoiled."""


class Stopped(Exception):
    """A step was stopped before its next write."""


class Faults:
    """What is to go wrong next. Nothing, unless a test says so."""

    def __init__(self) -> None:
        self.memory_is_full = False
        self.loses_next_reply = False
        self.writes_left: int | None = None
        self.spoiled: set[tuple[QueueName, int]] = set()
        self.garbled: set[TaskId] = set()

    def before_write(self) -> None:
        """Raise Stopped where a step may write no more."""
        if self.writes_left == 0:
            raise Stopped
        if self.writes_left is not None:
            self.writes_left -= 1

    def before_admission(self) -> None:
        """Raise BrokerOutOfMemory where memory is full."""
        if self.memory_is_full:
            raise BrokerOutOfMemory("memory is full")

    def before_read(self, task_id: TaskId) -> None:
        """Raise RecordUnreadable where the record of the task is garbled."""
        if task_id in self.garbled:
            raise RecordUnreadable(f"the record of task {task_id} is garbled")

    def before_reply(self) -> None:
        """End the harm that was meant for this call; raise OutcomeUnknown where its reply is to be lost."""
        self.writes_left = None
        if self.loses_next_reply:
            self.loses_next_reply = False
            raise OutcomeUnknown("the reply was lost")
