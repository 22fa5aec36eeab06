"""Streams without a server: the application is called as a server would call it, on a clock that is moved by hand."""

import asyncio
from collections.abc import Mapping, MutableMapping
from datetime import timedelta
from typing import Any

import msgspec
from dependency_injector import providers

from dtq.adapters.memory import ManualClock, State, backend_of
from dtq.adapters.memory.clock import settle
from dtq.domain.events import Event
from dtq.entrypoints.config import load
from dtq.entrypoints.container import build
from dtq.entrypoints.http.app import create_app
from dtq.entrypoints.http.stream_protocol import FRAMES, TRANSPORT
from dtq.entrypoints.part_options import backend_options
from dtq.handlers import Registry
from tests.entrypoints.recorder import Recorder

HOST = "dtq.example"
TURNS = 200


class Connection:
    """One call of the application, what it said, and what it was told."""

    def __init__(self, app: Any, scope: dict[str, Any], first: Mapping[str, Any]) -> None:
        self.sent: list[MutableMapping[str, Any]] = []
        self.is_aborted = False
        self._writable = asyncio.Event()
        self._writable.set()
        self._incoming: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self._incoming.put_nowait(first)
        self._kind = scope["type"]
        self.life = asyncio.ensure_future(app(scope, self._incoming.get, self._send))

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        await self._writable.wait()
        self.sent.append(message)

    def clog(self) -> None:
        """Take nothing any more of what is sent."""
        self._writable.clear()

    def unclog(self) -> None:
        """Take everything that is sent."""
        self._writable.set()

    def say(self, text: str) -> None:
        """Send a message as the client."""
        self._incoming.put_nowait({"type": f"{self._kind}.receive", "text": text})

    def hang_up(self) -> None:
        """Go away."""
        self._incoming.put_nowait({"type": f"{self._kind}.disconnect", "code": 1006})

    def abort(self) -> None:
        """What the server does when the application has the connection cut."""
        self.is_aborted = True
        self.hang_up()

    def types(self) -> list[str]:
        """The kinds of what was sent."""
        return [message["type"] for message in self.sent]

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the answer."""
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def messages(self) -> list[dict[str, Any]]:
        """What a WebSocket was sent as text."""
        return [msgspec.json.decode(sent["text"]) for sent in self.sent if sent.get("text")]

    @property
    def body(self) -> bytes:
        """What an HTTP client, or a refused WebSocket, was sent."""
        return b"".join(sent["body"] for sent in self.sent if sent["type"].endswith("response.body"))

    async def come_to_rest(self) -> None:
        """Let everything happen that needs no time."""
        await settle(turns=TURNS)


class StreamApp:
    """The application over a broker in memory."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        settings = load(environment=environment or {}).settings
        self.clock = ManualClock()
        self.backend = backend_of(State(self.clock, options=backend_options(settings)))
        self.notes = Recorder()
        self.container = build(settings, registry=Registry(), service="api")
        self.container.backend.override(providers.Object(self.backend))
        self.container.log.override(providers.Object(self.notes))
        self.app = create_app(self.container)

    @property
    def clients(self) -> int:
        """How many listen."""
        return self.container.fan_out().clients

    async def socket(
        self,
        query: str = "",
        *,
        path: str = "/ws/events",
        headers: Mapping[str, str] | None = None,
        extensions: Mapping[str, Any] | None = None,
    ) -> Connection:
        """Open a WebSocket."""
        offered = {"websocket.http.response": {}} if extensions is None else dict(extensions)
        scope = {**self._scope("websocket", path, query, headers), "subprotocols": [], "extensions": offered}
        return await self._begun(Connection(self.app, scope, {"type": "websocket.connect"}))

    async def framed_socket(self) -> Connection:
        """Open a WebSocket on a server that takes frames by the batch."""
        return await self.socket(extensions={FRAMES: {}})

    async def stream(self, query: str = "", *, headers: Mapping[str, str] | None = None) -> Connection:
        """Ask for server-sent events."""
        scope = {**self._scope("http", "/api/v1/events", query, headers), "method": "GET", "extensions": {}}
        connection = Connection(self.app, scope, {"type": "http.request", "body": b"", "more_body": False})
        scope["extensions"][TRANSPORT] = {"abort": connection.abort, "narrow": lambda: None}
        return await self._begun(connection)

    async def publish(self, *events: Event) -> None:
        """Publish events, and let them come through."""
        for event in events:
            await self.backend.events.publish(event)
        await self.pass_time(timedelta(milliseconds=20))

    async def pass_time(self, by: timedelta) -> None:
        """Move the clock, and let everything that follows from it happen."""
        await self.clock.advance(by)
        await settle(turns=TURNS)

    async def _begun(self, connection: Connection) -> Connection:
        await connection.come_to_rest()
        return connection

    def _scope(self, kind: str, path: str, query: str, headers: Mapping[str, str] | None) -> dict[str, Any]:
        given = {"host": HOST, **(headers or {})}
        return {
            "type": kind,
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "scheme": "http" if kind == "http" else "ws",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
            "client": ("192.0.2.1", 4711),
            "server": (HOST, 80),
            "state": {},
        }
