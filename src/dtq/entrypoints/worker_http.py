"""The pages of a worker: /metrics for Prometheus, /health for supervisors.

They are served by a thread of their own, with an event loop of its own. On the worker's loop, a handler that computes
would keep a probe waiting until the supervisor kills a worker that does its work, and a scrape would fail just when its
figures matter. The thread shares the interpreter with the handlers: it is late by some milliseconds for each that
computes, and only code that holds the interpreter without a break keeps it from answering.
"""

import asyncio
import socket
from collections.abc import Callable, Mapping
from http import HTTPStatus
from threading import Event, Thread
from typing import Final

from msgspec import Struct

ANY_HOST: Final = "0.0.0.0"  # noqa: S104 - Prometheus scrapes from another host; the port is off by default
PATIENCE_S: Final = 5.0
"""How long a client may take to ask, and how long to take the answer."""

MAX_HEAD_BYTES: Final = 8192
MAX_CLIENTS: Final = 32
"""How many clients may be asking at a time; one more, and the first of them gives way."""


_BACKLOG: Final = 64
_SPACE: Final = b"\r\n\r\n"


class Page(Struct, frozen=True, kw_only=True):
    """One page; ``text`` is called on the thread of the server."""

    content_type: str
    text: Callable[[], bytes]


HEALTH: Final = Page(content_type="application/json", text=lambda: b'{"status":"ok"}')


class _Answer(Struct, frozen=True, kw_only=True):
    status: HTTPStatus
    page: Page
    allow: str = ""

    def encoded(self, *, with_body: bool) -> bytes:
        body = self.page.text()
        lines = [
            f"HTTP/1.1 {int(self.status)} {self.status.phrase}",
            f"Content-Type: {self.page.content_type}",
            f"Content-Length: {len(body)}",
            *([f"Allow: {self.allow}"] if self.allow else []),
            "Cache-Control: no-store",
            "X-Content-Type-Options: nosniff",
            "Connection: close",
        ]
        return "\r\n".join(lines).encode() + _SPACE + (body if with_body else b"")


class WorkerHttp:
    """Serves pages on *listener* from ``start`` until the process ends."""

    def __init__(self, listener: socket.socket, *, pages: Mapping[str, Page]) -> None:
        self._listener = listener
        self._pages = pages
        self._thread = Thread(target=self._live, name="dtq-http", daemon=True)
        self._is_begun = Event()
        self._clients: dict[asyncio.StreamWriter, None] = {}

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()
        self._is_begun.wait()

    def _live(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._is_begun.set()
        server = await asyncio.start_server(self._meet, sock=self._listener, limit=MAX_HEAD_BYTES)
        async with server:
            await server.serve_forever()

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._clients) >= MAX_CLIENTS:
            # whoever came first has had the longest time to ask: silent strangers keep no probe out
            first = next(iter(self._clients))
            del self._clients[first]
            first.transport.abort()
        self._clients[writer] = None
        try:
            async with asyncio.timeout(PATIENCE_S):
                writer.write(self._answer_to(await reader.readuntil(_SPACE)))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            # a client that says nothing of use is owed nothing
            writer.transport.abort()
        finally:
            self._clients.pop(writer, None)

    def _answer_to(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
        page = self._pages.get(rest.partition(" ")[0].partition("?")[0])
        if page is None:
            return _refused(HTTPStatus.NOT_FOUND).encoded(with_body=method != "HEAD")
        if method not in {"GET", "HEAD"}:
            return _refused(HTTPStatus.METHOD_NOT_ALLOWED, allow="GET, HEAD").encoded(with_body=True)
        return _Answer(status=HTTPStatus.OK, page=page).encoded(with_body=method == "GET")


def listen(port: int, *, host: str = ANY_HOST) -> socket.socket:
    """Listen on *port*; 0 takes a free one. Raises OSError."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _refused(status: HTTPStatus, *, allow: str = "") -> _Answer:
    page = Page(content_type="text/plain; charset=utf-8", text=lambda: status.phrase.encode() + b"\n")
    return _Answer(status=status, page=page, allow=allow)
