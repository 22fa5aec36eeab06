"""What authors of task handlers use: the decorator, the context, the errors, and a helper against repeats."""

from dtq.domain.outcome import PermanentError, RetryableError
from dtq.handlers.context import TaskContext
from dtq.handlers.operation import idempotent_operation
from dtq.handlers.registry import Handler, Registry, task

__all__ = [
    "Handler",
    "PermanentError",
    "Registry",
    "RetryableError",
    "TaskContext",
    "idempotent_operation",
    "task",
]
