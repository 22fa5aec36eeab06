"""The public handler API under the import path of the contract; the code is in dtq."""

from dtq import PermanentError, RetryableError, TaskContext, idempotent_operation, task

__all__ = ["PermanentError", "RetryableError", "TaskContext", "idempotent_operation", "task"]
