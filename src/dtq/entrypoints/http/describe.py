"""How operations stand in the OpenAPI document: what they read, what they answer, and every error with its code."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import (
    Example,
    OpenAPIHeader,
    OpenAPIMediaType,
    OpenAPIResponse,
    Operation,
    Parameter,
    Reference,
    RequestBody,
    Schema,
)
from litestar.openapi.spec.enums import OpenAPIType

from dtq.domain.admission import KEY_PATTERN, QUEUE_PATTERN, TASK_ID_PATTERN
from dtq.domain.workers import WORKER_ID_PATTERN
from dtq.entrypoints.http.auth import REQUEST_ID_HEADER
from dtq.entrypoints.http.errors import MEANINGS, MEDIA_TYPE, STATUS_OF, Problem
from dtq.entrypoints.http.queries import Query

JSON: Final = "application/json"

NULL: Final = "\x00null"
"""Stands for null in examples: Litestar leaves members out that are None."""

Responses = dict[int, ResponseSpec]


def _text(pattern: str, description: str) -> Schema:
    return Schema(type=OpenAPIType.STRING, pattern=f"^{pattern}$", description=description)


def _path(name: str, pattern: str, description: str) -> Parameter:
    return Parameter(
        name=name, param_in="path", schema=_text(pattern, description), required=True, description=description
    )


TASK_ID: Final = _path("task_id", TASK_ID_PATTERN.pattern, "The id that the task was given when it was submitted.")
QUEUE_NAME: Final = _path("queue", QUEUE_PATTERN.pattern, "The name of a queue.")
WORKER_ID: Final = _path("worker_id", WORKER_ID_PATTERN.pattern, "The id of a worker.")
IDEMPOTENCY_KEY: Final = Parameter(
    name="Idempotency-Key",
    param_in="header",
    schema=_text(KEY_PATTERN.pattern, "The idempotency key."),
    required=False,
    description="Names the task among those of its queue: it is made once. Wins over `idempotency_key` in the body.",
)
REQUEST_ID: Final = Parameter(
    name=REQUEST_ID_HEADER,
    param_in="header",
    schema=Schema(type=OpenAPIType.STRING),
    required=False,
    description=(
        "An id of the caller's choice, for the answer, the log and the audit trail: 1 to 64 letters, digits, `.`, `_` "
        "or `-`. Any other is replaced by a new one."
    ),
)


def operation(*reads: Parameter | Query[Any], body: str | None = None) -> type[Operation]:
    """Describe what a handler reads by itself: parameters, and the body that is the component of this name."""
    parameters = [one.described() if isinstance(one, Query) else one for one in reads]

    @dataclass
    class Described(Operation):
        def __post_init__(self) -> None:
            self.parameters = [*parameters, REQUEST_ID]
            if body is not None:
                schema = Reference(ref=f"#/components/schemas/{body}")
                self.request_body = RequestBody(content={JSON: OpenAPIMediaType(schema=schema)}, required=True)
            for status, response in (self.responses or {}).items():
                if isinstance(response, OpenAPIResponse):
                    response.headers = {**(response.headers or {}), **_headers(int(status))}

    return Described


def answer(body: type[Any], description: str, *examples: object) -> ResponseSpec:
    """Describe a success."""
    return ResponseSpec(
        body,
        media_type=JSON,
        description=description,
        generate_examples=False,
        examples=[Example(summary=description, value=_without_none(example)) for example in examples],
    )


def _without_none(value: object) -> object:
    match value:
        case None:
            return NULL
        case dict():
            return {name: _without_none(member) for name, member in value.items()}
        case list():
            return [_without_none(item) for item in value]
        case _:
            return value


def problems(*codes: str) -> Responses:
    """Describe errors: a response for each status, with an example for each code."""
    grouped: defaultdict[HTTPStatus, list[str]] = defaultdict(list)
    for code in codes:
        grouped[STATUS_OF[code]].append(code)
    return {int(status): _problem_spec(status, found) for status, found in grouped.items()}


def _problem_spec(status: HTTPStatus, codes: Sequence[str]) -> ResponseSpec:
    return ResponseSpec(
        Problem,
        media_type=MEDIA_TYPE,
        description="; ".join(f"`{code}`: {MEANINGS[code]}" for code in codes),
        generate_examples=False,
        examples=[Example(summary=code, value=_example(status, code)) for code in codes],
    )


def _example(status: HTTPStatus, code: str) -> dict[str, object]:
    problem: dict[str, object] = {
        "status": int(status),
        "title": status.phrase,
        "code": code,
        "detail": MEANINGS[code],
    }
    if code in {"INVALID_TASK", "INVALID_REQUEST"}:
        problem["errors"] = [{"field": "limit", "problem": "must be an integer within 1..500"}]
    if code == "IDEMPOTENCY_IN_PROGRESS":
        problem["task_id"] = "6f1c0e2d9b8a4c7f8e3d2a1b0c9d8e7f"
    return problem


def _headers(status: int) -> dict[str, OpenAPIHeader | Reference]:
    text, number = Schema(type=OpenAPIType.STRING), Schema(type=OpenAPIType.INTEGER, minimum=1)
    headers: dict[str, OpenAPIHeader | Reference] = {
        REQUEST_ID_HEADER: OpenAPIHeader(schema=text, required=True, description="The id of the request."),
    }
    match status:
        case HTTPStatus.TOO_MANY_REQUESTS | HTTPStatus.SERVICE_UNAVAILABLE:
            headers["Retry-After"] = OpenAPIHeader(
                schema=number, required=True, description="After how many seconds to try again."
            )
        case HTTPStatus.UNAUTHORIZED:
            headers["WWW-Authenticate"] = OpenAPIHeader(
                schema=text, required=True, description="The header that the key belongs in."
            )
        case HTTPStatus.ACCEPTED:
            headers["Location"] = OpenAPIHeader(schema=text, description="Where the task can be looked at.")
        case _:
            pass
    return headers
