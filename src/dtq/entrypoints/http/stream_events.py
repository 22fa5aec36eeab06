"""Events as server-sent events, for those who prefer plain HTTP."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import Any, Final

import msgspec
from litestar import Request, get
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Operation, Parameter, Schema
from litestar.openapi.spec.enums import OpenAPIType
from litestar.response.base import ASGIResponse
from litestar.types import Receive, Scope, Send
from msgspec import UNSET, Struct, UnsetType

from dtq.application.fan_out_filter import MAX_VALUES, EventFilter, event_filter
from dtq.application.fan_out_tap import Ending
from dtq.domain.admission import QUEUE_PATTERN, TASK_ID_PATTERN
from dtq.domain.errors import FieldProblem, InvalidRequest
from dtq.domain.events import EventType
from dtq.entrypoints.http.describe import problems
from dtq.entrypoints.http.stream import FAREWELL_LIMIT, SLOW, Streams, extensions_of, narrow
from dtq.entrypoints.http.stream_delivery import LOST, deliver, time_limit, until_gone
from dtq.entrypoints.http.stream_encoding import as_chunk
from dtq.entrypoints.http.stream_protocol import TRANSPORT
from dtq.ports.environment import Clock

EVENT_STREAM: Final = "text/event-stream"
MAX_SECONDS: Final = 86_400

_RECONNECT: Final = b"retry: 2000\n\n"

AnyRequest = Request[Any, Any, Any]


class ServerSentEvent(Struct, frozen=True, kw_only=True):
    """One message of the stream: an event, or under the name `control` a word about the stream."""

    data: str
    event: str | UnsetType = UNSET


class EventStream(ASGIResponse):
    """A response that goes on for as long as client and server wish."""

    _should_set_content_length = False

    def __init__(
        self, streams: Streams, *, wanted: EventFilter, seconds: float | None, headers: Mapping[str, str]
    ) -> None:
        super().__init__(media_type=EVENT_STREAM, headers=dict(headers))
        self._streams = streams
        self._wanted = wanted
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the end."""
        streams = self._streams

        async def send_chunks(chunks: Sequence[bytes]) -> None:
            await send({"type": "http.response.body", "body": b"".join(chunks), "more_body": True})

        with streams.fan_out.listen(self._wanted, encode=as_chunk) as tap:
            if self._seconds is not None:
                streams.clock.call_later(timedelta(seconds=self._seconds), lambda: tap.end(Ending.OVER))
            narrow(scope)
            await self.start_response(send)
            await send_chunks([_RECONNECT])
            ending = await deliver(tap, send=send_chunks, receive=receive, clock=streams.clock)
        streams.left(ending, scope)
        await _end_response(ending, scope, receive, send, clock=streams.clock)


async def _end_response(ending: Ending, scope: Scope, receive: Receive, send: Send, *, clock: Clock) -> None:
    if ending not in SLOW and await _is_ended(send, clock=clock):
        return
    if TRANSPORT in extensions_of(scope):
        # an orderly end would only queue up behind what is not taken
        extensions_of(scope)[TRANSPORT]["abort"]()
        await until_gone(receive)


async def _is_ended(send: Send, *, clock: Clock) -> bool:
    try:
        async with time_limit(clock, FAREWELL_LIMIT):
            await send({"type": "http.response.body", "body": b"", "more_body": False})
    except LOST:
        return False
    return True


def _parameter(name: str, schema: Schema, description: str) -> Parameter:
    return Parameter(name=name, param_in="query", schema=schema, required=False, description=description)


def _list_of(schema: Schema) -> Schema:
    return Schema(type=OpenAPIType.ARRAY, items=schema, max_items=MAX_VALUES)


@dataclass
class _WatchOperation(Operation):
    """Describes the parameters that are read as those of the WebSocket are, so that faults read the same in both."""

    def __post_init__(self) -> None:
        text, number = OpenAPIType.STRING, OpenAPIType.NUMBER
        queue = Schema(type=text, pattern=f"^{QUEUE_PATTERN.pattern}$")
        kind = Schema(type=text, enum=list(EventType))
        task_id = Schema(type=text, pattern=f"^{TASK_ID_PATTERN.pattern}$")
        seconds = Schema(type=number, exclusive_minimum=0, maximum=MAX_SECONDS)
        self.parameters = [
            _parameter("queue", _list_of(queue), "Only events of these queues"),
            _parameter("type", _list_of(kind), "Only events of these types"),
            _parameter("task_id", _list_of(task_id), "Only events of these tasks"),
            _parameter("seconds", seconds, "End the stream after so long"),
        ]


def _responses() -> dict[int, ResponseSpec]:
    what = "Events as they happen, each as one JSON object; there is no replay of earlier ones"
    stream = ResponseSpec(ServerSentEvent, media_type=EVENT_STREAM, description=what, generate_examples=False)
    return {HTTPStatus.OK: stream, **problems("INVALID_REQUEST", "ORIGIN_NOT_ALLOWED", "TOO_MANY_CLIENTS")}


@get(
    "/api/v1/events",
    media_type=EVENT_STREAM,
    operation_class=_WatchOperation,
    tags=["events"],
    summary="Watch events",
    responses=_responses(),
)
async def watch(request: AnyRequest, streams: NamedDependency[Streams]) -> EventStream:
    """Stream events as server-sent events, from now on, until either side ends it."""
    origin = streams.origins.check(request.headers)
    named = list(request.query_params.multi_items())
    wanted = event_filter((name, value) for name, value in named if name != "seconds")
    seconds = _seconds([value for name, value in named if name == "seconds"])
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    if origin is not None:
        headers |= {"access-control-allow-origin": origin, "vary": "origin"}
    return EventStream(streams, wanted=wanted, seconds=seconds, headers=headers)


def _seconds(given: Sequence[str]) -> float | None:
    """Read how long the stream is to last; of several values the last counts. Raises InvalidRequest."""
    if not given:
        return None
    try:
        seconds = msgspec.convert(given[-1], float, strict=False)
    except msgspec.ValidationError:
        seconds = 0.0
    if not 0 < seconds <= MAX_SECONDS:
        problem = f"must be a number above 0, at most {MAX_SECONDS}"
        raise InvalidRequest((FieldProblem("seconds", problem),))
    return seconds
