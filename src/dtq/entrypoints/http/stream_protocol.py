"""What uvicorn is taught for streams: many messages in one write, and an end to connections that do not end.

Both reach the application as extensions of the ASGI scope; under another server they are missing, and it does without.
"""

import asyncio
import socket
from datetime import timedelta
from functools import partial
from typing import Any, Final

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from dtq.entrypoints.http.bounded_http import BoundedHttp

FRAMES: Final = "dtq.frames"
"""In the scope: `websocket.send` may have a member of this name, any number of whole frames."""

TRANSPORT: Final = "dtq.transport"
"""In the scope: its member `abort` ends the connection at once; `narrow` lets little wait in front of the kernel."""

PING_EVERY: Final = timedelta(seconds=10)
PONG_WITHIN: Final = timedelta(seconds=10)
"""A client that has vanished is noticed after at most both of these, and the grace."""

GRACE: Final = timedelta(seconds=5)
"""How long a connection that is closed may take to send what is left; then it is cut."""

MAX_MESSAGE_BYTES: Final = 4096
"""A client has nothing to say here but pongs and its goodbye."""

_SEND_BUFFER_BYTES: Final = 128 * 1024
_WRITE_BUFFER_BYTES: Final = 16 * 1024
_UNACKNOWLEDGED_MS: Final = 15_000

SOCKET_OPTIONS: Final[dict[str, Any]] = {
    "ws_ping_interval": PING_EVERY.total_seconds(),
    "ws_ping_timeout": PONG_WITHIN.total_seconds(),
    "ws_max_size": MAX_MESSAGE_BYTES,
    # frames are made once for all clients, which compression, with its state for each, would not allow
    "ws_per_message_deflate": False,
}
"""What uvicorn is told beside the protocol classes."""


def prepare(listener: socket.socket) -> None:
    """Bound what the kernel keeps for a client that does not read, and how long it believes in one that is silent."""
    # what is accepted inherits both; left to itself, the kernel would buffer megabytes a client
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNACKNOWLEDGED_MS)


def _control_of(transport: asyncio.Transport) -> dict[Any, Any]:
    return {
        "abort": transport.abort,
        "narrow": partial(transport.set_write_buffer_limits, high=_WRITE_BUFFER_BYTES),
    }


class StreamHttp(BoundedHttp):
    """HTTP whose application has a say about the connection."""

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self.scope["extensions"] = {TRANSPORT: _control_of(self.transport)}


class StreamSocket(WebSocketsSansIOProtocol):
    """A WebSocket that takes frames by the batch and is cut when its end takes too long."""

    _cut: asyncio.TimerHandle | None = None

    async def run_asgi(self) -> None:
        """Run the application on this socket, and let nothing outlast it for long."""
        extensions: dict[Any, Any] = self.scope["extensions"]
        extensions[TRANSPORT] = _control_of(self.transport)
        if not self.conn.extensions:
            extensions[FRAMES] = {}
        try:
            await super().run_asgi()
        finally:
            self._cut_later()

    async def send(self, message: Any) -> None:
        """Send what the application says; a batch of frames goes out as it is."""
        if FRAMES in message:
            await self.writable.wait()
            if self.disconnected or self.close_sent or self.transport.is_closing():
                raise ClientDisconnected
            self.transport.write(message[FRAMES])
            return
        if message["type"] == "websocket.close":
            # a farewell is short, and must not wait for a client that does not read
            self.writable.set()
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            # a refusal is an answer too: otherwise its end is logged as a fault of the application
            self.handshake_complete = True

    def keepalive_timeout(self) -> None:
        """Say goodbye to a client that does not answer, and do not wait for it."""
        super().keepalive_timeout()
        self._cut_later()

    def shutdown(self) -> None:
        """Say that the server goes away."""
        if self.handshake_complete and not self.close_sent:
            self.conn.send_close(1001, "the server goes away")
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.close_sent = True
            self.queue.put_nowait({"type": "websocket.disconnect", "code": 1001, "reason": ""})
        super().shutdown()
        self._cut_later()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        if self._cut is not None:
            self._cut.cancel()
        super().connection_lost(exc)

    def _cut_later(self) -> None:
        if self._cut is None and not self.disconnected:
            self._cut = self.loop.call_later(GRACE.total_seconds(), self.transport.abort)
