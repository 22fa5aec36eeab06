"""A request says once whom it asks: of two names a proxy may believe one, and the rule for foreign pages the other."""

from typing import Any

import pytest

from dtq.entrypoints.http.stream_origin import Origins
from tests.entrypoints.recorder import Recorder
from tests.integration.test_slow_clients import UPGRADE, Impatient, problem, served

HOSTS = {"none": b"", "two": b"Host: x\r\nHost: y\r\n", "one twice": b"Host: x\r\nhost: x\r\n"}
AS_REQUEST = b"\r\n"
AS_SOCKET = UPGRADE.partition(b"Host: x\r\n")[2]


async def application(scope: Any, receive: Any, send: Any) -> None:
    del scope, receive
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("rest", [AS_REQUEST, AS_SOCKET], ids=["request", "websocket"])
async def test_a_request_that_does_not_name_one_host_is_refused(name: str, rest: bytes) -> None:
    async with served(application, Recorder()) as server, server.client() as client:
        await client.say(b"GET /health HTTP/1.1\r\n" + HOSTS[name] + rest)
        answer = await client.rest()

    assert (400, "INVALID_REQUEST", "a request of HTTP/1.1 names one Host") == problem(answer)
    assert 1 == answer.lower().count(b"\r\nx-content-type-options: nosniff\r\n")


async def test_an_older_request_needs_no_host() -> None:
    async with served(application, Recorder()) as server, server.client() as client:
        await client.say(b"GET /health HTTP/1.0\r\n\r\n")

        assert (await client.rest()).startswith(b"HTTP/1.1 204 ")


class Local(Impatient):
    origins = Origins(is_local=True)


@pytest.mark.parametrize("rest", [AS_REQUEST, AS_SOCKET], ids=["request", "websocket"])
async def test_whoever_asks_by_a_name_that_is_not_our_own_is_refused_before_anything_is_served(rest: bytes) -> None:
    async with served(application, Recorder(), http=Local) as server, server.client() as client:
        await client.say(b"GET /api/v1/tasks HTTP/1.1\r\nHost: evil.example\r\n" + rest)
        answer = await client.rest()

    status, code, detail = problem(answer)
    assert (421, "INVALID_REQUEST") == (status, code)
    assert "DTQ_WS_ALLOWED_ORIGINS" in detail
    assert b"evil" not in answer


@pytest.mark.parametrize("host", [b"Host: localhost:1\r\n", b"Host: [::1]\r\n", b"Host: \r\n"])
async def test_our_own_names_are_served(host: bytes) -> None:
    async with served(application, Recorder(), http=Local) as server, server.client() as client:
        await client.say(b"GET /health HTTP/1.1\r\n" + host + b"Connection: close\r\n\r\n")

        assert (await client.rest()).startswith(b"HTTP/1.1 204 ")


async def test_a_connection_that_asked_by_our_own_name_is_refused_another_one_later() -> None:
    async with served(application, Recorder(), http=Local) as server, server.client() as client:
        for _ in range(2):
            await client.say(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert (await client.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 204 ")
        await client.say(b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n")

        assert (await client.rest()).startswith(b"HTTP/1.1 421 ")
