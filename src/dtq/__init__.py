"""dtq: a distributed task queue on Redis Streams whose promises are tested as such."""

from typing import TYPE_CHECKING, Any

from dtq.domain.errors import (
    BrokerUnavailable,
    CancelRequested,
    DtqError,
    IdempotencyInProgress,
    InvalidTask,
    OutcomeUnknown,
    PayloadTooLarge,
    QueueFull,
    RecordUnreadable,
    TaskNotFound,
    TaskTerminal,
    Unauthorized,
    UnknownTaskType,
)
from dtq.handlers import PermanentError, RetryableError, TaskContext, idempotent_operation, task

if TYPE_CHECKING:
    from dtq.entrypoints.client import AsyncClient, Client, NoResult, Submission, Submitted, TaskState

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "BrokerUnavailable",
    "CancelRequested",
    "Client",
    "DtqError",
    "IdempotencyInProgress",
    "InvalidTask",
    "NoResult",
    "OutcomeUnknown",
    "PayloadTooLarge",
    "PermanentError",
    "QueueFull",
    "RecordUnreadable",
    "RetryableError",
    "Submission",
    "Submitted",
    "TaskContext",
    "TaskNotFound",
    "TaskState",
    "TaskTerminal",
    "Unauthorized",
    "UnknownTaskType",
    "__version__",
    "idempotent_operation",
    "task",
]

_OF_CLIENT = frozenset({"AsyncClient", "Client", "NoResult", "Submission", "Submitted", "TaskState"})


def __getattr__(name: str) -> Any:
    """Import the client when it is first asked for: a module of handlers needs nothing of it."""
    if name not in _OF_CLIENT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dtq.entrypoints import client  # noqa: PLC0415 - see above

    return getattr(client, name)
