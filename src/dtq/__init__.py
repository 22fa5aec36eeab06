"""dtq: a distributed task queue on Redis Streams whose promises are tested as such."""

from dtq.handlers import PermanentError, RetryableError, TaskContext, idempotent_operation, task

__version__ = "0.1.0"

__all__ = [
    "PermanentError",
    "RetryableError",
    "TaskContext",
    "__version__",
    "idempotent_operation",
    "task",
]
