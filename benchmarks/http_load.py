"""A client that costs little: each connection sends the same request again as soon as it is answered."""

import asyncio
import time
from dataclasses import dataclass
from typing import Final, cast

from tests.servers.process import LOOPBACK

HEAD_END: Final = b"\r\n\r\n"
WITHIN_S: Final = 300.0
LENGTH: Final = b"content-length: "


def post(path: str, body: bytes) -> bytes:
    """Return the bytes of a request."""
    head = f"POST {path} HTTP/1.1\r\nHost: {LOOPBACK}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return head.encode() + HEAD_END + body


class Connection(asyncio.Protocol):
    """Sends *left* requests, one at a time, and answers how they were answered."""

    def __init__(self, request: bytes, *, left: int, expected: bytes) -> None:
        self._request, self._left, self._expected = request, left, b"HTTP/1.1 " + expected
        self._buffer = bytearray()
        self._transport: asyncio.WriteTransport | None = None
        self.is_done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first."""
        # uvloop's transports are of no class of asyncio's, but can what a WriteTransport can
        self._transport = cast("asyncio.WriteTransport", transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Send the next when an answer is whole."""
        self._buffer += data
        head, found, body = self._buffer.partition(HEAD_END)
        if not found:
            return
        lowered = head.lower()
        begin = lowered.index(LENGTH) + len(LENGTH)
        if len(body) < int(lowered[begin:].split(b"\r\n", 1)[0]):
            return
        if not head.startswith(self._expected):
            self._end(RuntimeError(f"{bytes(head[:100])!r} {bytes(body[:500])!r}"))
            return
        self._buffer.clear()
        self._left -= 1
        if self._left > 0 and self._transport is not None:
            self._transport.write(self._request)
        else:
            self._end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail where answers are missing."""
        self._end(exc or ConnectionError("the server closed the connection"))

    def _end(self, error: Exception | None) -> None:
        if not self.is_done.done():
            if error is None:
                self.is_done.set_result(None)
            else:
                self.is_done.set_exception(error)
        if self._transport is not None:
            self._transport.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Requests of one kind: how many, over how many connections at a time, and the status that answers them."""

    path: str
    body: bytes
    count: int
    connections: int
    expected: str


async def sent(load: Load, *, port: int) -> float:
    """Send all requests and return how many were answered in a second. Raises where one is answered otherwise."""
    loop = asyncio.get_running_loop()
    each = max(1, load.count // load.connections)
    request, expected = post(load.path, load.body), load.expected.encode()
    began = time.perf_counter()
    made = [
        await loop.create_connection(lambda: Connection(request, left=each, expected=expected), LOOPBACK, port)
        for _ in range(load.connections)
    ]
    async with asyncio.timeout(WITHIN_S):
        await asyncio.gather(*(connection.is_done for _, connection in made))
    return each * load.connections / (time.perf_counter() - began)
