"""Every error as a problem document (RFC 9457), the framework's own included; one table from code to status."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any, Final

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, InternalServerException, ValidationException
from litestar.types import ExceptionHandlersMap
from msgspec import UNSET, Meta, Struct, UnsetType

from dtq.domain.errors import (
    BrokerUnavailable,
    DtqError,
    FieldProblem,
    IdempotencyInProgress,
    InvalidRequest,
    OutcomeUnknown,
    QueueFull,
    RecordUnreadable,
    StepStopped,
    Unauthorized,
    UnsuitableBroker,
)
from dtq.domain.text import class_name, clean
from dtq.ports.events import Observer

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER_S: Final = 1
NO_SNIFFING: Final = ("X-Content-Type-Options", "nosniff")
"""A header for every answer: a browser is to take none for what it does not say that it is."""

STATUS_OF: Final[Mapping[str, HTTPStatus]] = {
    "INVALID_TASK": HTTPStatus.BAD_REQUEST,
    "UNKNOWN_TASK_TYPE": HTTPStatus.BAD_REQUEST,
    "INVALID_REQUEST": HTTPStatus.BAD_REQUEST,
    "UNAUTHORIZED": HTTPStatus.UNAUTHORIZED,
    "ORIGIN_NOT_ALLOWED": HTTPStatus.FORBIDDEN,
    "TASK_NOT_FOUND": HTTPStatus.NOT_FOUND,
    "QUEUE_NOT_FOUND": HTTPStatus.NOT_FOUND,
    "WORKER_NOT_FOUND": HTTPStatus.NOT_FOUND,
    "NOT_IN_DLQ": HTTPStatus.NOT_FOUND,
    "NOT_FOUND": HTTPStatus.NOT_FOUND,
    "METHOD_NOT_ALLOWED": HTTPStatus.METHOD_NOT_ALLOWED,
    "IDEMPOTENCY_IN_PROGRESS": HTTPStatus.CONFLICT,
    "CANCEL_REQUESTED": HTTPStatus.CONFLICT,
    "NOT_DEAD_LETTERED": HTTPStatus.CONFLICT,
    "TASK_TERMINAL": HTTPStatus.GONE,
    "DLQ_DISCARDED": HTTPStatus.GONE,
    "PAYLOAD_TOO_LARGE": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "QUEUE_FULL": HTTPStatus.TOO_MANY_REQUESTS,
    "RECORD_UNREADABLE": HTTPStatus.INTERNAL_SERVER_ERROR,
    "BROKER_UNAVAILABLE": HTTPStatus.SERVICE_UNAVAILABLE,
    "TOO_MANY_CLIENTS": HTTPStatus.SERVICE_UNAVAILABLE,
    "UNSUITABLE_BROKER": HTTPStatus.SERVICE_UNAVAILABLE,
    "INTERNAL": HTTPStatus.INTERNAL_SERVER_ERROR,
}

MEANINGS: Final[Mapping[str, str]] = {
    "INVALID_TASK": "one or more fields of a submission break their bounds",
    "UNKNOWN_TASK_TYPE": "no handler of this name is registered here",
    "INVALID_REQUEST": "a query, an argument or the content type is wrong",
    "UNAUTHORIZED": "the API key is missing or wrong",
    "ORIGIN_NOT_ALLOWED": "a page of another origin asks, which is not in DTQ_WS_ALLOWED_ORIGINS",
    "TASK_NOT_FOUND": "no task of this id is stored",
    "QUEUE_NOT_FOUND": "no queue of this name is known",
    "WORKER_NOT_FOUND": "no worker of this id is known",
    "NOT_IN_DLQ": "the dead letters do not hold this task",
    "NOT_FOUND": "there is no such page",
    "METHOD_NOT_ALLOWED": "the page does not take this method",
    "IDEMPOTENCY_IN_PROGRESS": "the key belongs to a task that is alive, named by `task_id`",
    "CANCEL_REQUESTED": "the task runs; it is asked to stop, and will end cancelled",
    "NOT_DEAD_LETTERED": "the task is no dead letter",
    "TASK_TERMINAL": "the task has ended",
    "DLQ_DISCARDED": "the dead letter was discarded",
    "PAYLOAD_TOO_LARGE": "the payload, or the request around it, is too large",
    "QUEUE_FULL": "a limit on waiting work is reached: queue_full, schedule_full or too_many_queues",
    "RECORD_UNREADABLE": "what is stored is not what dtq wrote; trying again does not help, `dtq doctor` says more",
    "BROKER_UNAVAILABLE": "the broker is away or full; the detail says whether the request may have been carried out",
    "TOO_MANY_CLIENTS": "as many clients watch events, or wait for tasks, as may",
    "UNSUITABLE_BROKER": "the server is too old, set up wrongly, or forbids what dtq needs",
    "INTERNAL": "something that dtq did not expect; its log has more",
}
"""What each code tells, for people."""

_CLIENT_GONE: Final = "client disconnected prematurely"
"""What Litestar says of a client that leaves within its request; it has no exception of its own for that."""

_FRAMEWORK_CODES: Final = {
    HTTPStatus.NOT_FOUND: "NOT_FOUND",
    HTTPStatus.METHOD_NOT_ALLOWED: "METHOD_NOT_ALLOWED",
}


class Fault(Struct, frozen=True):
    """One fault of one input field."""

    field: str
    problem: str


class Problem(Struct, frozen=True, kw_only=True):
    """What went wrong: `code` is stable, `detail` is for people."""

    status: Annotated[int, Meta(description="The status of the answer.")]
    title: Annotated[str, Meta(description="The status in words.")]
    code: Annotated[str, Meta(description="What went wrong, for programs; it never changes its meaning.")]
    detail: Annotated[str, Meta(description="What went wrong, for people.")]
    errors: Annotated[list[Fault], Meta(description="Each fault of an input field.")] | UnsetType = UNSET
    task_id: Annotated[str, Meta(description="The task that an idempotency key belongs to.")] | UnsetType = UNSET
    retry_after_s: Annotated[int, Meta(description="After how many seconds to try again.")] | UnsetType = UNSET


def exception_handlers(observer: Observer) -> ExceptionHandlersMap:
    """Return what turns every exception into a problem document; unforeseen ones are reported to *observer*."""

    def foreseen(_: Request[Any, Any, Any], error: DtqError) -> Response[bytes]:
        return refusal(error)

    def framework(request: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
        if isinstance(error, InternalServerException) and error.detail == _CLIENT_GONE:
            # nobody will read the answer, and nothing is wrong here
            observer.noticed("client_gone")
            return _response(_problem(InvalidRequest.code, _CLIENT_GONE), headers={})
        if error.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return unforeseen(request, error)
        if error.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            limit = request.route_handler.resolve_request_max_body_size()
            problem = _problem("PAYLOAD_TOO_LARGE", f"the request is larger than {limit} bytes")
            return _response(problem, headers={})
        return _response(_problem_of_framework(error), headers=dict(error.headers or {}))

    def unforeseen(_: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
        observer.noticed("request_failed", error_class=class_name(error), where=_where(error))
        return _response(_problem("INTERNAL", "an error that dtq did not expect; its log has more"), headers={})

    return {DtqError: foreseen, HTTPException: framework, Exception: unforeseen}


def refusal(error: DtqError) -> Response[bytes]:
    """Answer with what dtq refuses or cannot do."""
    return _response(problem_of(error), headers=_headers_of(error))


def problem_of(error: DtqError) -> Problem:
    """Describe what dtq refuses or cannot do."""
    problems: tuple[FieldProblem, ...] = getattr(error, "problems", ())
    problem = _problem(error.code, _detail_of(error))
    if problems:
        faults = [Fault(clean(fault.field), clean(fault.problem)) for fault in problems]
        problem = msgspec.structs.replace(problem, errors=faults)
    if isinstance(error, IdempotencyInProgress):
        problem = msgspec.structs.replace(problem, task_id=error.task_id)
    wait = _retry_after(error)
    return problem if wait is None else msgspec.structs.replace(problem, retry_after_s=wait)


def problem_text(status: HTTPStatus, why: str) -> bytes:
    """Describe what never became a request, and has the status of its fault instead of its code's."""
    return msgspec.json.encode(Problem(status=status, title=status.phrase, code=InvalidRequest.code, detail=why))


def _detail_of(error: DtqError) -> str:
    """Return what a stranger may read; of a broker's troubles only that there are some."""
    match error:
        case StepStopped():
            return "the broker stopped half-way: the request may or may not have been carried out"
        case OutcomeUnknown():
            return "the broker did not answer in time: the request may or may not have been carried out"
        case RecordUnreadable():
            return f"{error}; {error.advice}"
        case BrokerUnavailable():
            return "the broker is unavailable: nothing was done"
        case UnsuitableBroker():
            return "the broker cannot be used as it is set up: nothing was done"
        case _:
            return str(error)


def _retry_after(error: DtqError) -> int | None:
    """Say after how many seconds to try again; None where that would not help."""
    if isinstance(error, QueueFull):
        return error.retry_after_s
    return RETRY_AFTER_S if STATUS_OF.get(error.code) is HTTPStatus.SERVICE_UNAVAILABLE else None


def _headers_of(error: DtqError) -> dict[str, str]:
    wait = _retry_after(error)
    if wait is not None:
        return {"Retry-After": str(wait)}
    return {"WWW-Authenticate": "X-API-Key"} if isinstance(error, Unauthorized) else {}


def _problem_of_framework(error: HTTPException) -> Problem:
    code = _FRAMEWORK_CODES.get(HTTPStatus(error.status_code), "INVALID_REQUEST")
    problem = _problem(code, error.detail)
    if isinstance(error, ValidationException) and isinstance(error.extra, list):
        faults = [Fault(clean(str(one.get("key"))), clean(str(one.get("message")))) for one in error.extra]
        problem = msgspec.structs.replace(problem, errors=faults)
    return problem


def _problem(code: str, detail: str) -> Problem:
    status = STATUS_OF.get(code, HTTPStatus.INTERNAL_SERVER_ERROR)
    return Problem(status=status, title=status.phrase, code=code, detail=clean(detail))


def _response(problem: Problem, *, headers: dict[str, str]) -> Response[bytes]:
    content = msgspec.json.encode(problem)
    return Response(content, status_code=problem.status, media_type=MEDIA_TYPE, headers=headers)


def _where(error: Exception) -> str:
    """Return the line that raised, without the values that it worked on."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return "" if place is None else f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}"
