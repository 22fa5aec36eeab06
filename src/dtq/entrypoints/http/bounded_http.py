"""HTTP for strangers: what a request may be made of before it is read, and how long it may take to arrive.

uvicorn leaves both open on httptools: an unfinished header would grow as long as its client likes, and be copied for
each piece of it, and a client that falls silent in the middle of a request would be waited for without an end.
"""

import asyncio
from datetime import timedelta
from enum import Enum, auto
from http import HTTPStatus
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from dtq.entrypoints.http.errors import MEDIA_TYPE, NO_SNIFFING, problem_text
from dtq.entrypoints.http.stream_origin import Origins

MAX_HEAD_BYTES: Final = 64 * 1024
"""How large the first line and the headers of a request may be together, trailers included."""

HEAD_WITHIN: Final = timedelta(seconds=30)
"""How long a client may take until its first line and headers are there."""

BODY_WITHIN: Final = timedelta(seconds=30)
"""How long a client may be silent within the body of a request."""

_TOO_LARGE: Final = f"the first line and the headers of the request are larger than {MAX_HEAD_BYTES} bytes"
_TOO_SLOW: Final = "the request did not arrive in time"
_MALFORMED: Final = "this is no HTTP request"
_NOT_ONE_HOST: Final = "a request of HTTP/1.1 names one Host"
_OTHER_NAME: Final = (
    "only this machine can reach this API, and the name that it is asked by is none of this machine:"
    " DTQ_WS_ALLOWED_ORIGINS names the origins that lead here"
)


class _TooLarge(Exception):
    """Leaves the parser, which then parses no further."""


class _NotOneHost(Exception):
    """Leaves the parser as well: who is asked is not said, or twice (RFC 9112, section 3.2)."""


class _OtherName(Exception):
    """Leaves the parser as well: whoever is asked, it is not this API."""


class _Stage(Enum):
    """What of a request is awaited from the client."""

    NOTHING = auto()
    HEAD = auto()
    BODY = auto()


class BoundedHttp(HttpToolsProtocol):
    """HTTP/1.1 of uvicorn that refuses heads without measure with 431, and clients that fall silent with 408.

    What asks for a host that cannot be this API, as ``origins`` know it, is refused with 421.
    """

    origins = Origins()
    head_within = HEAD_WITHIN
    body_within = BODY_WITHIN

    _stage = _Stage.NOTHING
    _waiting: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _unfinished_bytes = 0
    _refusal = (HTTPStatus.BAD_REQUEST, _MALFORMED)
    _known_host = b""
    _was_paused = False
    _is_left = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait(self.head_within)

    def data_received(self, data: bytes) -> None:
        """Read on, and see whether that goes too far."""
        self._unfinished_bytes += len(data)
        super().data_received(data)
        self._was_paused = self.flow.read_paused
        if self._is_left or self.transport.is_closing():
            return
        if self._head_bytes + self._unfinished_bytes > MAX_HEAD_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, _TOO_LARGE)
        elif self._stage is _Stage.BODY and self._served():
            self._wait(self.body_within)
        elif self._stage is _Stage.NOTHING and self._served():
            self._wait(None)
        elif self._waiting is None:
            # also for the line ends that may come before a request, which make uvicorn forget its own timer
            self._wait(self.head_within)

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        if self.cycle is not None:
            # what was awaited belonged to the request before
            self._wait(None)
        self._stage = _Stage.HEAD
        self._head_bytes = 0

    def on_url(self, url: bytes) -> None:
        """Take a piece of the first line."""
        self._finished(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, or a trailer after the body."""
        self._finished(len(name) + len(value) + len(": \r\n"))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to serve the request."""
        self._unfinished_bytes = 0
        self._stage = _Stage.BODY
        hosts = [value for name, value in self.headers if name == b"host"]
        if len(hosts) > 1 or (not hosts and self.parser.get_http_version() == "1.1"):
            self._refusal = (HTTPStatus.BAD_REQUEST, _NOT_ONE_HOST)
            raise _NotOneHost
        if hosts and hosts[0] != self._known_host:
            if not self.origins.may_be_asked(hosts[0].decode("latin-1")):
                self._refusal = (HTTPStatus.MISDIRECTED_REQUEST, _OTHER_NAME)
                raise _OtherName
            # a connection that stays open names the same one each time
            self._known_host = hosts[0]
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._unfinished_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Have the whole request."""
        self._unfinished_bytes = 0
        self._stage = _Stage.NOTHING
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """Leave the connection to another protocol."""
        self._is_left = True
        self._wait(None)
        super().handle_websocket_upgrade()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._is_left = True
        self._wait(None)
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be parsed, or is not to be."""
        del msg
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, _TOO_LARGE)
        else:
            self._refuse(*self._refusal)

    def _finished(self, size: int) -> None:
        """Count what the parser handed over: what it has not is unfinished, and kept by it."""
        self._unfinished_bytes = max(0, self._unfinished_bytes - size)
        self._head_bytes += size
        if self._head_bytes > MAX_HEAD_BYTES:
            raise _TooLarge

    def _served(self) -> RequestResponseCycle | None:
        """Return the last request, until its answer is complete."""
        cycle: RequestResponseCycle | None = self.cycle
        return None if cycle is None or cycle.response_complete else cycle

    def _wait(self, within: timedelta | None) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting = None if within is None else self.loop.call_later(within.total_seconds(), self._give_up)

    def _give_up(self) -> None:
        self._waiting = None
        if self._stage is _Stage.BODY and self._was_paused:
            # it was not the client that was slow, but whoever is to read what it has sent
            self._was_paused = self.flow.read_paused
            self._wait(self.body_within)
        elif self._stage is _Stage.NOTHING or (self._stage is _Stage.BODY and not self._served()):
            self.transport.close()
        else:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, _TOO_SLOW)

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        """Answer, where no other answer has begun, and end the connection."""
        self._wait(None)
        served = self._served()
        if self.pipeline or (served is not None and served.response_started):
            self.transport.abort()
            return
        body = problem_text(status, why)
        headers: list[tuple[bytes, Any]] = [
            *self.server_state.default_headers,
            (b"content-type", MEDIA_TYPE.encode()),
            (NO_SNIFFING[0].lower().encode(), NO_SNIFFING[1].encode()),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        lines = [f"HTTP/1.1 {status.value} {status.phrase}".encode(), *[b"%b: %b" % header for header in headers]]
        self.transport.write(b"\r\n".join([*lines, b"", body]))
        self.transport.close()
