"""Every line that is logged while a request is served names the request."""

from collections.abc import Callable

from litestar.types import ASGIApp, Receive, Scope, Send
from structlog.contextvars import bind_contextvars, reset_contextvars

from dtq.entrypoints.http.auth import request_id_of
from dtq.ports.environment import Ids


def request_context(ids: Ids) -> Callable[[ASGIApp], ASGIApp]:
    """Return the middleware that binds the id of a request for as long as it is served."""

    def around(app: ASGIApp) -> ASGIApp:
        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            before = bind_contextvars(request_id=request_id_of(scope, ids=ids))
            try:
                await app(scope, receive, send)
            finally:
                reset_contextvars(**before)

        return serve

    return around
