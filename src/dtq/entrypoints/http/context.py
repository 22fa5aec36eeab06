"""What is around every request: its id, in each line that is logged meanwhile, and in the headers of its answer."""

from contextvars import ContextVar
from typing import Any, Final

from litestar import Litestar
from litestar.types import Send
from structlog.contextvars import bind_contextvars, reset_contextvars

from dtq.entrypoints.http.auth import REQUEST_ID_HEADER, request_id_of
from dtq.entrypoints.http.errors import NO_SNIFFING
from dtq.ports.environment import Ids

HANDSHAKES: Final = frozenset({"http.response.start", "websocket.accept", "websocket.http.response.start"})
"""The messages that carry the headers of an answer."""

_REQUEST_ID: Final = REQUEST_ID_HEADER.lower().encode()
_NO_SNIFFING: Final = (NO_SNIFFING[0].lower().encode(), NO_SNIFFING[1].encode())
_OURS: Final = frozenset({_REQUEST_ID, _NO_SNIFFING[0]})


class Application(Litestar):
    """Litestar, where every request has an id.

    No middleware does it: each costs another layer of handling errors.
    """

    def __init__(self, *, ids: Ids, **settings: Any) -> None:
        super().__init__(**settings)
        self._ids = ids
        self._around = _variable("request_id")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve a request, or the life of the application."""
        if scope["type"] == "lifespan":
            await super().__call__(scope, receive, send)
            return
        scope.setdefault("state", {})
        request_id = request_id_of(scope, ids=self._ids)
        before = self._around.set(request_id)
        try:
            await super().__call__(scope, receive, _naming(send, request_id))
        finally:
            self._around.reset(before)


def _naming(send: Send, request_id: str) -> Send:
    ours = [(_REQUEST_ID, request_id.encode("latin-1")), _NO_SNIFFING]

    async def named(message: Any) -> None:
        if message["type"] in HANDSHAKES:
            others = [header for header in message.get("headers", ()) if header[0].lower() not in _OURS]
            message["headers"] = others + ours
        await send(message)

    return named


def _variable(name: str) -> ContextVar[Any]:
    """Return the variable that structlog keeps for a field, asked for once and not by name for each request."""
    tokens = bind_contextvars(**{name: None})
    reset_contextvars(**tokens)
    return tokens[name].var
