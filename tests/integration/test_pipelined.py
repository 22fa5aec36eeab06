"""Requests that a client sends before it has the answer to the last one."""

import asyncio
from typing import Any

from tests.entrypoints.recorder import Recorder
from tests.integration.test_slow_clients import GET, served


async def test_no_refusal_is_written_into_an_answer_that_goes_on() -> None:
    seen = asyncio.Event()

    async def app(_: Any, __: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"part", "more_body": True})
        await seen.wait()

    async with served(app, Recorder()) as server, server.client() as client:
        await client.say(GET + b"\r\n")
        await client.reader.readuntil(b"part")

        await client.say(GET + b"\r\n" + b"\x00 is no request\r\n\r\n")

        try:
            said = await client.rest()
        except ConnectionResetError:
            said = b""
        seen.set()
        assert b"HTTP/1.1" not in said
