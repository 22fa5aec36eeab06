"""What a handler is told about the attempt it runs."""

from collections.abc import Callable
from datetime import datetime

from msgspec import Struct

from dtq.domain.task import QueueName, TaskId, WorkerId


class TaskContext(Struct, frozen=True, kw_only=True):
    """The attempt that a handler runs (contract section 15). ``deadline`` is aware UTC, the attempt's own end."""

    task_id: TaskId
    idempotency_key: str | None
    attempt: int
    worker_id: WorkerId
    queue: QueueName
    deadline: datetime
    seconds_left: Callable[[], float]

    def remaining(self) -> float:
        """Return how many seconds are left until the deadline; negative once it has passed."""
        return self.seconds_left()
