"""A connection that was closed and does not end is cut, whatever its client does."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from uvicorn.server import ServerState

from dtq.entrypoints.api import uvicorn_config
from dtq.entrypoints.http.stream_protocol import GRACE, StreamSocket


class Line(asyncio.Transport):
    """A connection whose client takes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True

    def close(self) -> None:
        """Wait for ever for the client to take what is left."""

    def is_closing(self) -> bool:
        return False

    def write(self, data: Any) -> None:
        """Send into the void."""


class Timers:
    """What a loop does for a protocol: it sets timers, which here go off when a test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[float, Callable[[], None]]] = []

    def call_later(self, delay: float, callback: Callable[..., None], *arguments: object) -> asyncio.Handle:
        self.waiting.append((delay, lambda: callback(*arguments)))
        return asyncio.Handle(callback, arguments, asyncio.get_running_loop())


async def application(scope: object, receive: object, send: object) -> None:
    """End at once."""


def connected() -> tuple[StreamSocket, Line, Timers]:
    settings = uvicorn_config(application)
    settings.load()
    line, timers = Line(), Timers()
    made: Any = StreamSocket(settings, ServerState(), {})
    made.connection_made(line)
    made.loop = timers
    return made, line, timers


@pytest.mark.parametrize("end", ["shutdown", "keepalive_timeout"])
async def test_a_closed_connection_is_cut_after_the_grace(end: str) -> None:
    protocol, line, timers = connected()

    getattr(protocol, end)()

    ((_, go_off),) = [timer for timer in timers.waiting if timer[0] == GRACE.total_seconds()]
    assert not line.is_aborted
    go_off()
    assert line.is_aborted
