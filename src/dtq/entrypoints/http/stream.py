"""What WebSockets and server-sent events have in common."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final

from msgspec import Struct

from dtq.application.fan_out import FanOut
from dtq.application.fan_out_tap import Ending
from dtq.entrypoints.http.auth import peer_of
from dtq.entrypoints.http.stream_origin import Origins
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
    observer: Observer

    def note(self, ending: Ending, scope: Mapping[str, Any]) -> None:
        """Tell operators about a client that was too slow."""
        if ending in SLOW:
            self.observer.noticed("slow_client_closed", ending=ending.value, peer=peer_of(scope))


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
