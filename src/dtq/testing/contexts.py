"""A context for handlers that a test calls itself."""

from datetime import UTC, datetime, timedelta
from typing import Final

from dtq.domain.task import QueueName, TaskId, WorkerId
from dtq.handlers.context import TaskContext

_BEGAN: Final = datetime(2026, 1, 1, tzinfo=UTC)


def context(
    *,
    attempt: int = 1,
    task_id: str = "0" * 32,
    idempotency_key: str | None = None,
    queue: str = "default",
    worker_id: str = "test-worker",
    remaining: float = 30.0,
) -> TaskContext:
    """Return what a handler is given beside its payload; ``remaining()`` returns *remaining* whenever it is asked."""
    return TaskContext(
        task_id=TaskId(task_id),
        idempotency_key=idempotency_key,
        attempt=attempt,
        worker_id=WorkerId(worker_id),
        queue=QueueName(queue),
        deadline=_BEGAN + timedelta(seconds=remaining),
        seconds_left=lambda: remaining,
    )
