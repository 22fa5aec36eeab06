"""What may stand in a query: read strictly, described in the OpenAPI document, and nothing else accepted."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Final, Generic, TypeVar

from litestar import Request
from litestar.openapi.spec import Parameter, Schema
from litestar.openapi.spec.enums import OpenAPIType
from msgspec import Struct
from msgspec.structs import replace

from dtq.application.requests import MAX_LIMIT
from dtq.application.waiting import LONGEST
from dtq.domain.admission import QUEUE_PATTERN
from dtq.domain.errors import FieldProblem, InvalidRequest
from dtq.domain.status import TaskStatus
from dtq.domain.text import clean

DEFAULT_LIMIT: Final = 50

_MAX_PROBLEMS: Final = 20
_LONGEST_S: Final = LONGEST.total_seconds()
_INTEGER: Final = re.compile(r"([0-9]{1,9})(\.0{1,9})?")
_NUMBER: Final = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,30})?([eE][-+]?[0-9]{1,3})?")

T = TypeVar("T")
AnyRequest = Request[Any, Any, Any]


class Query(Struct, Generic[T], frozen=True, kw_only=True):
    """One parameter: how it is read, where ValueError says what is allowed, and how it is described."""

    name: str
    default: T
    read: Callable[[str], T]
    schema: Schema
    description: str

    def of(self, request: AnyRequest) -> T:
        """Return its value in *request*. Raises InvalidRequest."""
        text = request.query_params.get(self.name)
        if text is None:
            return self.default
        try:
            return self.read(text)
        except ValueError as problem:
            raise InvalidRequest((FieldProblem(self.name, str(problem)),)) from problem

    def described(self) -> Parameter:
        """Return how the OpenAPI document describes it."""
        return Parameter(
            name=self.name, param_in="query", schema=self.schema, required=False, description=self.description
        )


async def refuse_unknown(request: AnyRequest) -> None:
    """Refuse a query that names what the handler does not read, or one thing twice. Raises InvalidRequest.

    A misspelled filter would otherwise show everything, and one for a purge purge everything.
    """
    if not request.scope["query_string"]:
        return
    known = [query.name for query in request.route_handler.opt.get("queries", ())]
    problems = tuple(_problems(request, known))[:_MAX_PROBLEMS]
    if problems:
        raise InvalidRequest(problems)


def _problems(request: AnyRequest, known: list[str]) -> Iterator[FieldProblem]:
    seen: set[str] = set()
    for name, _ in request.query_params.multi_items():
        if name not in known:
            allowed = f"known are {', '.join(known)}" if known else "this takes none"
            yield FieldProblem(clean(name, limit=100), f"unknown query parameter; {allowed}")
        elif name in seen:
            yield FieldProblem(name, "given more than once")
        seen.add(name)


def _limit(text: str) -> int:
    found = _INTEGER.fullmatch(text)
    limit = 0 if found is None else int(found[1])
    if not 1 <= limit <= MAX_LIMIT:
        raise ValueError(f"must be an integer within 1..{MAX_LIMIT}")
    return limit


def _wait(text: str) -> timedelta:
    if not _NUMBER.fullmatch(text) or not 0 <= float(text) <= _LONGEST_S:
        raise ValueError(f"must be a number of seconds within 0..{_LONGEST_S:g}")
    return timedelta(seconds=float(text))


LIMIT: Final = Query(
    name="limit",
    default=DEFAULT_LIMIT,
    read=_limit,
    schema=Schema(type=OpenAPIType.INTEGER, minimum=1, maximum=MAX_LIMIT, default=DEFAULT_LIMIT),
    description="How many to return at most.",
)
WHOLE: Final = replace(
    LIMIT,
    default=MAX_LIMIT,
    schema=Schema(type=OpenAPIType.INTEGER, minimum=1, maximum=MAX_LIMIT, default=MAX_LIMIT),
)
"""The limit of a list that is no longer than somebody has written it."""

WAIT: Final = Query(
    name="wait",
    default=timedelta(),
    read=_wait,
    schema=Schema(type=OpenAPIType.NUMBER, minimum=0, maximum=_LONGEST_S, default=0),
    description="Answer as soon as the task has ended, or after so many seconds with the task as it is then.",
)
QUEUE: Final = Query[str | None](
    name="queue",
    default=None,
    read=str,
    schema=Schema(type=OpenAPIType.STRING, pattern=f"^{QUEUE_PATTERN.pattern}$"),
    description="Only tasks of this queue.",
)
STATUS: Final = Query[str | None](
    name="status",
    default=None,
    read=str,
    schema=Schema(type=OpenAPIType.STRING, enum=list(TaskStatus)),
    description="Only tasks of this status.",
)
