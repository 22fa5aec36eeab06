"""A request says once whom it asks: of two names a proxy may believe one, and the rule for foreign pages the other."""

from typing import Any

import pytest

from tests.entrypoints.recorder import Recorder
from tests.integration.test_slow_clients import UPGRADE, problem, served

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
