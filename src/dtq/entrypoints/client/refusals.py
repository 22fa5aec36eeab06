"""A problem document back into the error that it tells of, so that both ways to the tasks raise the same."""

import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from dtq.application.waiting import TooManyWaiters
from dtq.domain.errors import (
    BrokerUnavailable,
    CancelRequested,
    DtqError,
    FieldProblem,
    IdempotencyInProgress,
    InvalidRequest,
    InvalidTask,
    OutcomeUnknown,
    PayloadTooLarge,
    QueueFull,
    RecordUnreadable,
    TaskNotFound,
    TaskTerminal,
    Unauthorized,
    UnknownTaskType,
    UnsuitableBroker,
)
from dtq.domain.status import TaskStatus
from dtq.domain.task import TaskId

_LIMIT: Final = re.compile(r"(?P<reason>[a-z_]+): (?P<value>\d+) of (?P<limit>\d+)")
_SIZE: Final = re.compile(r"(?P<size>\d+) (?P<unit>\w+), at most (?P<limit>\d+) are allowed")
_TYPE: Final = re.compile(r"no handler named '(?P<name>.*)' is registered", re.DOTALL)
_ENDED: Final = re.compile(r".* has ended: (?P<status>[a-z_]+)")


class UnexpectedAnswer(DtqError):
    """The server answered in a way that this client does not know; the message has its status and code."""


class Refusal(Struct, frozen=True, kw_only=True):
    """The members of a problem document that a client reads."""

    status: int
    code: str = ""
    detail: str = ""
    errors: list[FieldProblem] = []
    task_id: str = ""
    retry_after_s: int = 1


def refusal_of(content: bytes, *, status: int) -> Refusal:
    """Read a problem document; what is none, such as a proxy's page, has no code."""
    try:
        return msgspec.json.decode(content, type=Refusal)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Refusal(status=status)


def error_of(refusal: Refusal, *, task_id: str = "") -> DtqError:
    """Return the error that was answered to a request about the task *task_id*."""
    make = _ERRORS.get(refusal.code)
    error = None if make is None else make(refusal, TaskId(task_id))
    if error is None:
        return UnexpectedAnswer(f"status {refusal.status}, code {refusal.code or 'none'}: {refusal.detail}")
    return error


def _payload_too_large(refusal: Refusal, _: TaskId) -> DtqError | None:
    fault = refusal.errors[0] if refusal.errors else FieldProblem("body", "")
    found = _SIZE.search(fault.problem)
    if found is None:
        return None
    size, limit = int(found["size"]), int(found["limit"])
    return PayloadTooLarge(size=size, limit=limit, field=fault.field, unit=found["unit"])


def _queue_full(refusal: Refusal, _: TaskId) -> DtqError | None:
    found = _LIMIT.fullmatch(refusal.detail)
    if found is None:
        return None
    value, limit = int(found["value"]), int(found["limit"])
    return QueueFull(found["reason"], value=value, limit=limit, retry_after_s=refusal.retry_after_s)


def _invalid_request(refusal: Refusal, _: TaskId) -> DtqError:
    # what is wrong with the request as a whole has no field
    return InvalidRequest(tuple(refusal.errors) or (FieldProblem("request", refusal.detail),))


def _unknown_task_type(refusal: Refusal, _: TaskId) -> DtqError | None:
    found = _TYPE.search(refusal.detail)
    return None if found is None else UnknownTaskType(found["name"])


def _terminal(refusal: Refusal, task_id: TaskId) -> DtqError | None:
    found = _ENDED.fullmatch(refusal.detail)
    return None if found is None else TaskTerminal(task_id, status=TaskStatus(found["status"]))


def _unavailable(refusal: Refusal, _: TaskId) -> DtqError:
    if "may or may not" in refusal.detail:
        return OutcomeUnknown(refusal.detail)
    return BrokerUnavailable(refusal.detail)


_ERRORS: Final[Mapping[str, Callable[[Refusal, TaskId], DtqError | None]]] = {
    "INVALID_TASK": lambda refusal, _: InvalidTask(tuple(refusal.errors)),
    "INVALID_REQUEST": _invalid_request,
    "UNKNOWN_TASK_TYPE": _unknown_task_type,
    "PAYLOAD_TOO_LARGE": _payload_too_large,
    "QUEUE_FULL": _queue_full,
    "IDEMPOTENCY_IN_PROGRESS": lambda refusal, _: IdempotencyInProgress(TaskId(refusal.task_id), status=None),
    "TASK_NOT_FOUND": lambda _, task_id: TaskNotFound(task_id),
    "TASK_TERMINAL": _terminal,
    "CANCEL_REQUESTED": lambda _, task_id: CancelRequested(task_id),
    "UNAUTHORIZED": lambda refusal, _: Unauthorized(refusal.detail),
    "RECORD_UNREADABLE": lambda refusal, _: RecordUnreadable(refusal.detail),
    "BROKER_UNAVAILABLE": _unavailable,
    "UNSUITABLE_BROKER": lambda refusal, _: UnsuitableBroker(refusal.detail),
    "TOO_MANY_CLIENTS": lambda _refusal, _task_id: TooManyWaiters(),
}
