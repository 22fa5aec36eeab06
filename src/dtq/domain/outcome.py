"""How one attempt ended, and whether what went wrong is worth another."""

from datetime import timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct

from dtq.domain.task import Failure
from dtq.domain.text import clean

MAX_MESSAGE: Final = 500
"""The longest error message that is kept, in characters (contract section 1)."""
MAX_CLASS: Final = 100
"""The longest name of an error's class that is kept."""

WORKER_LOST: Final = "WorkerLost"
UNKNOWN_TASK_TYPE: Final = "UnknownTaskType"
PAYLOAD_NOT_DECODABLE: Final = "PayloadNotDecodable"
RESULT_NOT_SERIALIZABLE: Final = "ResultNotSerializable"
TIMEOUT: Final = "TimeoutError"


class RetryableError(Exception):
    """Raised by a handler: this attempt failed, another may succeed."""


class PermanentError(Exception):
    """Raised by a handler: no attempt of this task can succeed."""


class AttemptResult(StrEnum):
    """How an attempt counts in the metrics (contract section 9)."""

    SUCCESS = "success"
    FAILURE = "failure"
    TIMEOUT = "timeout"
    ERROR = "error"


class Succeeded(Struct, frozen=True, kw_only=True):
    """The handler returned. ``result`` is its JSON text, None where it was too large to keep; ``ran`` is its time."""

    result: str | None
    truncated: bool = False
    ran: timedelta | None = None


class Failed(Struct, frozen=True, kw_only=True):
    """The handler did not return, or could not be run."""

    failure: Failure
    kind: AttemptResult = AttemptResult.FAILURE


Outcome = Succeeded | Failed


def classify(error: BaseException, *, retryable: tuple[type[BaseException], ...]) -> Failed:
    """Turn what left a handler into a failure; what is in no list is permanent, so that nothing loops for ever.

    PermanentError wins over every list; RetryableError and TimeoutError are always retryable. A group of errors is
    what each of them is: retryable where all are, or where its own class is listed and no PermanentError is in it.
    """
    again = _is_retryable(error, (RetryableError, TimeoutError, *retryable))
    return failed(type(error).__name__, _message_of(error), retryable=again)


def failed(error_class: str, message: str, *, retryable: bool, kind: AttemptResult = AttemptResult.FAILURE) -> Failed:
    """Describe a failure with its text cleaned and cut; the length of the text decides nothing."""
    failure = Failure(
        error_class=clean(error_class, limit=MAX_CLASS),
        error_message=clean(message, limit=MAX_MESSAGE),
        retryable=retryable,
    )
    return Failed(failure=failure, kind=kind)


def timed_out(seconds: float) -> Failed:
    """Describe an attempt whose own deadline passed."""
    return failed(TIMEOUT, f"no result within {seconds:g} s", retryable=True, kind=AttemptResult.TIMEOUT)


def unknown_task_type(task_type: str) -> Failed:
    """Describe a task that no handler here can run (contract section 4)."""
    message = f"unknown_task_type:{task_type}"
    return failed(UNKNOWN_TASK_TYPE, message, retryable=False, kind=AttemptResult.ERROR)


def undecodable(problem: str) -> Failed:
    """Describe a task whose payload is no JSON object."""
    return failed(PAYLOAD_NOT_DECODABLE, problem, retryable=False, kind=AttemptResult.ERROR)


def worker_lost() -> Failed:
    """Describe an attempt whose worker went away without a word."""
    return failed(WORKER_LOST, "the worker was lost during this attempt", retryable=True, kind=AttemptResult.ERROR)


def _is_retryable(error: BaseException, listed: tuple[type[BaseException], ...]) -> bool:
    # not recursive: a handler may nest groups as deep as it likes
    if not isinstance(error, BaseExceptionGroup):
        return isinstance(error, listed) and not isinstance(error, PermanentError)
    groups: list[BaseExceptionGroup[BaseException]] = [error]
    is_listed, are_listed = isinstance(error, listed), True
    while groups:
        for one in groups.pop().exceptions:
            if isinstance(one, PermanentError):
                return False
            if isinstance(one, BaseExceptionGroup):
                groups.append(one)
            else:
                are_listed = are_listed and isinstance(one, listed)
    return is_listed or are_listed


def _message_of(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as broken:  # noqa: BLE001 - a stranger's __str__ may raise anything, and must not end the worker
        return f"no message: __str__ raised {type(broken).__name__}"
