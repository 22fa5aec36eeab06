"""How one attempt ended, and whether what went wrong is worth another."""

from datetime import timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct

from dtq.domain.task import Failure
from dtq.domain.text import class_name, clean, text_of

MAX_MESSAGE: Final = 500
"""The longest error message that is kept, in characters (contract section 1)."""
MAX_CLASS: Final = 100
"""The longest name of an error's class that is kept."""

WORKER_LOST: Final = "WorkerLost"
UNKNOWN_TASK_TYPE: Final = "UnknownTaskType"
PAYLOAD_NOT_DECODABLE: Final = "PayloadNotDecodable"
RESULT_NOT_SERIALIZABLE: Final = "ResultNotSerializable"
TIMEOUT: Final = "TimeoutError"

_INNER: Final = vars(BaseExceptionGroup)["exceptions"]
"""The errors in a group, as no class of a stranger can tell them otherwise."""


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

    # as a member equals its text; the hash of enumerations is made in Python
    __hash__ = str.__hash__


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
    An error is of a class where ``except`` would catch it, whatever it says of itself. Never raises.
    """
    again = _is_retryable(error, (RetryableError, TimeoutError, *retryable))
    return failed(class_name(error), text_of(error), retryable=again)


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
    if _is_of(error, PermanentError):
        return False
    if not _is_of(error, BaseExceptionGroup):
        return _is_of(error, *listed)
    leaves = _leaves_of(error)
    if any(_is_of(one, PermanentError) for one in leaves):
        return False
    return _is_of(error, *listed) or all(_is_of(one, *listed) for one in leaves)


def _leaves_of(error: BaseException) -> list[BaseException]:
    """Return the errors in a group that are no groups; a PermanentError is one in any case."""
    # not recursive, and each group once: a handler may nest groups as deep as it likes, and one in many others
    groups, seen = [error], {id(error)}
    leaves: list[BaseException] = []
    while groups:
        for one in _INNER.__get__(groups.pop()):
            if id(one) in seen:
                continue
            seen.add(id(one))
            is_group = _is_of(one, BaseExceptionGroup) and not _is_of(one, PermanentError)
            (groups if is_group else leaves).append(one)
    return leaves


def _is_of(error: BaseException, *classes: type[BaseException]) -> bool:
    # isinstance asks metaclasses and __class__, which may lie or raise
    return any(type.__subclasscheck__(one, type(error)) for one in classes)
