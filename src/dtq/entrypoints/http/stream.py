"""What WebSockets and server-sent events have in common."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final

from msgspec import Struct

from dtq.application.fan_out import FanOut
from dtq.application.fan_out_tap import Ending
from dtq.entrypoints.container import Container
from dtq.entrypoints.http.auth import peer_of
from dtq.entrypoints.http.stream_memory import MemoryReturn
from dtq.entrypoints.http.stream_origin import Origins, origins_of
from dtq.entrypoints.http.stream_protocol import TRANSPORT
from dtq.ports.environment import Clock
from dtq.ports.events import Observer

SLOW: Final = frozenset({Ending.OVERFLOW, Ending.STUCK})
"""The endings that are the client's doing."""

FAREWELL_LIMIT: Final = timedelta(seconds=1)
"""How long a last word to a client may take."""


class Streams(Struct, frozen=True, kw_only=True):
    """What every stream of this process shares."""

    fan_out: FanOut
    clock: Clock
    origins: Origins
    memory: MemoryReturn
    observer: Observer

    def left(self, ending: Ending, scope: Mapping[str, Any]) -> None:
        """Take note of a client that has gone, and tell operators if it was too slow."""
        self.memory.departed()
        if ending in SLOW:
            self.observer.noticed("slow_client_closed", ending=ending.value, peer=peer_of(scope))


def streams_of(container: Container) -> Streams:
    """Put together what streams share."""
    clock = container.backend().clock
    return Streams(
        fan_out=container.fan_out(),
        clock=clock,
        origins=origins_of(container.settings()),
        memory=MemoryReturn(clock),
        observer=container.log(),
    )


@asynccontextmanager
async def closed_at_end(fan_out: FanOut) -> AsyncIterator[None]:
    """Let every client go when the application ends."""
    try:
        yield
    finally:
        await fan_out.closed()


def extensions_of(scope: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the server offers beyond plain ASGI."""
    extensions: Mapping[str, Any] | None = scope.get("extensions")
    return extensions or {}


def narrow(scope: Mapping[str, Any]) -> None:
    """Let little of a stream wait in this process where it can wait in the client's own buffer, if the server can."""
    if TRANSPORT in extensions_of(scope):
        extensions_of(scope)[TRANSPORT]["narrow"]()
