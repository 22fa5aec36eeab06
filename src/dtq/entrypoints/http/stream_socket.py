"""Events over a WebSocket: one text message each."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from litestar import WebSocket, websocket
from litestar.di import NamedDependency
from litestar.handlers import WebsocketRouteHandler

from dtq.application.fan_out_filter import EventFilter, event_filter
from dtq.application.fan_out_tap import Ending
from dtq.domain.errors import DtqError
from dtq.entrypoints.http.errors import MEDIA_TYPE, refusal
from dtq.entrypoints.http.stream import FAREWELL_LIMIT, Streams, extensions_of, narrow
from dtq.entrypoints.http.stream_delivery import LOST, deliver, time_limit
from dtq.entrypoints.http.stream_encoding import as_frame, as_text
from dtq.entrypoints.http.stream_protocol import FRAMES
from dtq.ports.environment import Clock

CLOSE_CODES: Final[Mapping[Ending, tuple[int, str]]] = {
    Ending.OVERFLOW: (1013, "too slow: the buffer is full of events that must not be dropped"),
    Ending.STUCK: (1013, "too slow: what was sent is not taken"),
    Ending.SHUTDOWN: (1001, "the server goes away"),
}
"""What a WebSocket is closed with."""

REFUSED: Final = 1008
"""What it is closed with where a server cannot answer a handshake with a document."""

_MAX_REASON_BYTES: Final = 120

AnySocket = WebSocket[Any, Any, Any]


def socket_at(path: str) -> WebsocketRouteHandler:
    """Serve events at *path*."""

    async def over_socket(socket: AnySocket, streams: NamedDependency[Streams]) -> None:
        await socket.receive()
        try:
            streams.origins.check(socket.headers)
            await _listen(socket, streams, wanted=event_filter(socket.query_params.multi_items()))
        except DtqError as error:
            await _refuse(socket, error)

    return websocket(path)(over_socket)


async def _listen(socket: AnySocket, streams: Streams, *, wanted: EventFilter) -> None:
    can_batch = FRAMES in extensions_of(socket.scope)

    async def send_batch(frames: Sequence[bytes]) -> None:
        message: Any = {"type": "websocket.send", FRAMES: b"".join(frames)}
        await socket.send(message)

    async def send_each(texts: Sequence[bytes]) -> None:
        for text in texts:
            await socket.send({"type": "websocket.send", "bytes": None, "text": text.decode()})

    with streams.fan_out.listen(wanted, encode=as_frame if can_batch else as_text) as tap:
        narrow(socket.scope)
        await socket.send({"type": "websocket.accept", "subprotocol": None, "headers": []})
        send = send_batch if can_batch else send_each
        ending = await deliver(tap, send=send, receive=socket.receive, clock=streams.clock)
    streams.left(ending, socket.scope)
    if ending in CLOSE_CODES:
        await _say_farewell(socket, streams.clock, *CLOSE_CODES[ending])


async def _say_farewell(socket: AnySocket, clock: Clock, code: int, reason: str) -> None:
    try:
        async with time_limit(clock, FAREWELL_LIMIT):
            await socket.send({"type": "websocket.close", "code": code, "reason": reason})
    except LOST:
        # it has gone by itself meanwhile, or will be cut
        return


async def _refuse(socket: AnySocket, error: DtqError) -> None:
    """Answer the handshake with a problem document; where the server cannot, close with the code and a reason."""
    answer = refusal(error)
    if "websocket.http.response" not in extensions_of(socket.scope):
        reason = f"{error.code}: {error}".encode()[:_MAX_REASON_BYTES].decode(errors="ignore")
        await socket.send({"type": "websocket.close", "code": REFUSED, "reason": reason})
        return
    headers = {"content-type": MEDIA_TYPE, **answer.headers}
    raw = [(name.lower().encode("latin-1"), str(value).encode("latin-1")) for name, value in headers.items()]
    start: Any = {"type": "websocket.http.response.start", "status": answer.status_code, "headers": raw}
    body: Any = {"type": "websocket.http.response.body", "body": answer.content, "more_body": False}
    await socket.send(start)
    await socket.send(body)
