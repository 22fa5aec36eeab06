"""Clients that send too much, or too slowly, or go in the middle: over real sockets, with short patience."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from uvicorn.server import ServerState

from dtq.adapters.memory import connect
from dtq.entrypoints.api import uvicorn_config
from dtq.entrypoints.http.app import create_app
from dtq.entrypoints.http.bounded_http import MAX_HEAD_BYTES
from dtq.entrypoints.http.stream_protocol import StreamHttp
from dtq.ports.backend import BackendOptions
from tests.entrypoints.recorder import Recorder
from tests.entrypoints.serving import container_over
from tests.judged.waiting import wait_until

WITHIN = timedelta(seconds=0.8)
PIECE_EVERY_S = 0.1
LONG_S = 20.0

POST = b"POST /api/v1/tasks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
BODY = b'{"task_type":"greet","payload":{}}'
POST_HEAD = POST + b"Content-Length: %d\r\n\r\n" % len(BODY)
GET = b"GET /health HTTP/1.1\r\nHost: x\r\n"
UPGRADE = (
    b"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


class Impatient(StreamHttp):
    head_within = WITHIN
    body_within = WITHIN
    heard = 0

    def data_received(self, data: bytes) -> None:
        Impatient.heard += len(data)
        super().data_received(data)


class Client:
    """One connection, on which a test says what no HTTP library would."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def say(self, data: bytes) -> None:
        """Send, and return when the server has heard it."""
        until = Impatient.heard + len(data)
        self.writer.write(data)
        await asyncio.to_thread(wait_until, lambda: Impatient.heard >= until, within=LONG_S, what="it is heard")

    async def drip(self, pieces: Iterable[bytes]) -> None:
        """Send piece by piece, slowly."""
        for piece in pieces:
            self.writer.write(piece)
            await asyncio.sleep(PIECE_EVERY_S)

    async def rest(self, *, meanwhile: Iterable[bytes] = ()) -> bytes:
        """Everything that the server says until it ends the connection, while pieces drip in."""
        dripping = asyncio.create_task(self.drip(meanwhile))
        try:
            async with asyncio.timeout(LONG_S):
                return await self.reader.read()
        finally:
            dripping.cancel()

    async def answer(self) -> tuple[int, bytes]:
        """The status and the body of one answer."""
        async with asyncio.timeout(LONG_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
            return int(head.split()[1]), await self.reader.readexactly(length)

    async def is_left_alone(self) -> bool:
        """Whether the server neither says anything nor ends the connection while its patience lasts, twice."""
        try:
            async with asyncio.timeout(2 * WITHIN.total_seconds()):
                await self.reader.read(1)
        except TimeoutError:
            return True
        return False


class Served:
    """A server of one application, and its log."""

    def __init__(self, port: int, notes: Recorder) -> None:
        self.port = port
        self.notes = notes

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield Client(reader, writer)
        finally:
            writer.transport.abort()


@asynccontextmanager
async def served(app: Any, notes: Recorder, *, http: type[StreamHttp] | None = None) -> AsyncIterator[Served]:
    kind = http or Impatient
    config = uvicorn_config(app, http=kind)
    config.load()
    state = ServerState()
    make = partial(kind, config=config, server_state=state, app_state={})
    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
    async with server:
        yield Served(server.sockets[0].getsockname()[1], notes)
    for connection in list(state.connections):
        connection.transport.abort()
    if state.tasks:
        await asyncio.wait(state.tasks, timeout=LONG_S)


@pytest.fixture
async def api() -> AsyncIterator[Served]:
    container = container_over(connect("memory://", options=BackendOptions()))
    notes: Any = container.log()
    async with served(create_app(container), notes) as server:
        yield server
    await container.fan_out().closed()


def problem(said: bytes) -> tuple[int, str, str]:
    """The status of the only answer, its code and its detail."""
    head, _, body = said.partition(b"\r\n\r\n")
    told = json.loads(body)
    assert b"content-type: application/problem+json\r\n" in head
    assert head.endswith(b"connection: close")
    assert int(head.split()[1]) == told["status"]
    return told["status"], told["code"], told["detail"]


@pytest.mark.parametrize("begin", [GET, b"GET /health", POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n"])
async def test_what_does_not_end_is_refused_before_it_grows(api: Served, begin: bytes) -> None:
    async with api.client() as client:
        await client.say(begin)
        await client.say(b"X" * MAX_HEAD_BYTES)

        assert (431, "INVALID_REQUEST") == problem(await client.rest())[:2]


@pytest.mark.parametrize(
    "header", [b"X: " + MAX_HEAD_BYTES * b"x" + b"\r\n", b"".join(b"X-%d: x\r\n" % n for n in range(8000))]
)
@pytest.mark.parametrize("begin", [GET, POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n"])
async def test_headers_and_trailers_that_are_too_large_are_refused(api: Served, begin: bytes, header: bytes) -> None:
    async with api.client() as client:
        await client.say(begin + header[: len(header) // 2])
        client.writer.write(header[len(header) // 2 :] + b"\r\n")

        assert (431, "INVALID_REQUEST") == problem(await client.rest())[:2]


async def test_a_request_that_is_refused_for_its_headers_reaches_no_application() -> None:
    asked: list[object] = []

    async def app(scope: Any, _: Any, __: Any) -> None:
        asked.append(scope)

    large = MAX_HEAD_BYTES * b"x"
    async with served(app, Recorder()) as server, server.client() as client:
        await client.say(POST_HEAD.removesuffix(b"\r\n") + b"X: " + large[: MAX_HEAD_BYTES // 2])
        client.writer.write(large[MAX_HEAD_BYTES // 2 :] + b"\r\n\r\n" + BODY)

        assert 431 == problem(await client.rest())[0]
    assert [] == asked


async def test_large_headers_and_requests_in_one_go_are_served(api: Served) -> None:
    large = b'{"task_type":"greet","payload":{"x":"%b"}}' % (100_000 * b"x")
    async with api.client() as client:
        client.writer.write(POST + b"Content-Length: %d\r\n\r\n" % len(large) + large)
        client.writer.write(GET + b"X: " + (MAX_HEAD_BYTES - 100) * b"x" + b"\r\n\r\n" + GET + b"\r\n")

        assert [202, 200, 200] == [(await client.answer())[0] for _ in range(3)]


async def test_what_is_no_request_is_refused_as_a_problem(api: Served) -> None:
    async with api.client() as client:
        await client.say(b"\x16\x03\x01\x02\x00\r\n\r\n")

        assert (400, "INVALID_REQUEST", "this is no HTTP request") == problem(await client.rest())


async def test_a_client_that_says_nothing_is_let_go_without_a_word(api: Served) -> None:
    async with api.client() as client:
        assert b"" == await client.rest()


@pytest.mark.parametrize("before", [b"", GET + b"\r\n"])
async def test_a_head_that_drips_in_is_given_up(api: Served, before: bytes) -> None:
    async with api.client() as client:
        if before:
            await client.say(before)
            assert 200 == (await client.answer())[0]

        assert 408 == problem(await client.rest(meanwhile=[GET, *[b"X: x\r\n"] * 200]))[0]


async def test_line_ends_before_a_request_hold_no_connection(api: Served) -> None:
    async with api.client() as client:
        await client.say(GET + b"\r\n")
        assert 200 == (await client.answer())[0]

        assert b"" == await client.rest(meanwhile=[b"\r\n"] * 200)


async def test_a_body_that_stops_is_given_up_and_no_fault_of_ours(api: Served) -> None:
    async with api.client() as client:
        await client.say(POST_HEAD + BODY[:5])

        assert (408, "INVALID_REQUEST", "the request did not arrive in time") == problem(await client.rest())
    await asyncio.to_thread(wait_until, lambda: api.notes.notices, within=LONG_S, what="it is noted")
    assert [("client_gone", {})] == api.notes.notices


async def test_a_body_that_goes_on_is_waited_for(api: Served) -> None:
    async with api.client() as client:
        await client.say(POST_HEAD)
        await client.drip(BODY[n : n + 2] for n in range(0, len(BODY), 2))

        assert 202 == (await client.answer())[0]


async def test_a_client_that_goes_within_its_body_is_no_fault_of_ours(api: Served) -> None:
    async with api.client() as client:
        await client.say(POST_HEAD + BODY[:5])
    await asyncio.to_thread(wait_until, lambda: api.notes.notices, within=LONG_S, what="it is noted")

    assert [("client_gone", {})] == api.notes.notices


async def test_a_connection_that_has_become_a_websocket_is_left_alone() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert "websocket" == scope["type"]
        await send({"type": "websocket.accept"})
        while "websocket.disconnect" != (await receive())["type"]:
            pass

    async with served(app, Recorder()) as server, server.client() as client:
        await client.say(UPGRADE)

        assert 101 == (await client.answer())[0]
        assert await client.is_left_alone()


async def test_a_client_is_not_blamed_for_what_the_application_does_not_read() -> None:
    go_on = asyncio.Event()

    async def app(_: Any, receive: Any, send: Any) -> None:
        await go_on.wait()
        size, more = 0, True
        while more:
            message = await receive()
            size, more = size + len(message["body"]), message["more_body"]
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"6")]})
        await send({"type": "http.response.body", "body": b"%d" % size})

    async with served(app, Recorder()) as server, server.client() as client:
        client.writer.write(POST + b"Content-Length: 900000\r\n\r\n" + 900_000 * b"x")
        assert await client.is_left_alone()
        go_on.set()

        assert (200, b"900000") == await client.answer()


async def test_a_body_that_goes_on_after_its_answer_ends_the_connection() -> None:
    async def app(_: Any, __: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 413, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    async with served(app, Recorder()) as server, server.client() as client:
        await client.say(POST + b"Content-Length: 900000\r\n\r\n")
        assert 413 == (await client.answer())[0]

        assert b"" == await client.rest(meanwhile=[b"x"] * 200)


async def test_an_answer_that_has_begun_is_cut_off_where_the_request_stops() -> None:
    async def app(_: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})
        await send({"type": "http.response.body", "body": b"part", "more_body": True})
        while "http.disconnect" != (await receive())["type"]:
            pass

    async with served(app, Recorder()) as server, server.client() as client:
        await client.say(POST_HEAD)

        assert (await client.rest()).endswith(b"\r\n\r\npart")
