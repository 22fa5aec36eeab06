"""Who asks: the API key, the actor's name in the audit stream, and the id of the request."""

import hashlib
import hmac
import os
import re
from collections.abc import Mapping
from typing import Any, Final

from litestar import Request
from litestar.connection import ASGIConnection
from litestar.enums import HttpMethod, ScopeType
from litestar.handlers.base import BaseRouteHandler
from msgspec import Struct

from dtq.domain.audit import Actor
from dtq.domain.errors import Unauthorized
from dtq.ports.environment import Ids
from dtq.ports.events import Observer

KEY_HEADER: Final = "X-API-Key"
REQUEST_ID_HEADER: Final = "X-Request-ID"
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_STATE_KEY: Final = "dtq_request_id"
_ACTOR_KEY: Final = "dtq_actor"

AnyRequest = Request[Any, Any, Any]
AnyConnection = ASGIConnection[Any, Any, Any, Any]


class KeyGuard(Struct, frozen=True, kw_only=True):
    """Lets through who has the key; everybody where there is none.

    Who is refused is logged, and not audited: strangers could flush the trail.
    """

    key: str
    ids: Ids
    observer: Observer

    def let_in(self, connection: AnyConnection, handler: BaseRouteHandler) -> None:
        """Stand before a handler whose `opt` names its action, and remember who comes in. Raises Unauthorized."""
        scope = connection.scope
        if scope["type"] == ScopeType.HTTP and scope["method"] == HttpMethod.OPTIONS:
            # what may be asked is no secret; Litestar answers that by itself
            return
        scope["state"][_ACTOR_KEY] = self.admit(scope, action=handler.opt["action"])

    def admit(self, scope: Mapping[str, Any], *, action: str) -> Actor:
        """Return who asks for *action*, for the audit trail. Raises Unauthorized."""
        request_id = request_id_of(scope, ids=self.ids)
        if not self.key:
            return Actor(name=f"anonymous@{peer_of(scope)}", request_id=request_id)
        expected = os.fsencode(self.key)
        if not _is_given(expected, scope):
            peer = peer_of(scope)
            self.observer.noticed("refused", action=action, code=Unauthorized.code, peer=peer, request_id=request_id)
            raise Unauthorized(f"this needs the right key in the header {KEY_HEADER}")
        return Actor(name=f"api-key:{hashlib.sha256(expected).hexdigest()[:8]}", request_id=request_id)


def _is_given(expected: bytes, scope: Mapping[str, Any]) -> bool:
    """Compare bytes, in constant time: neither the time taken nor an odd character may tell a stranger more.

    A key that is given twice is given by somebody who guesses, or behind a proxy that does not know what it adds.
    """
    given = [value for name, value in scope["headers"] if name == KEY_HEADER.lower().encode()]
    return hmac.compare_digest(given[0] if len(given) == 1 else b"", expected)


def actor_of(request: AnyRequest) -> Actor:
    """Return who was let in to do what the request asks for."""
    actor: Actor = request.scope["state"][_ACTOR_KEY]
    return actor


def peer_of(scope: Mapping[str, Any]) -> str:
    """Return the address that a request came from."""
    client = scope.get("client")
    return str(client[0]) if client else "unknown"


def request_id_of(scope: Mapping[str, Any], *, ids: Ids) -> str:
    """Return the id of a request: the caller's where it is harmless, otherwise a new one, the same each time."""
    known: dict[str, str] = scope["state"]
    if _STATE_KEY not in known:
        wanted = REQUEST_ID_HEADER.lower().encode()
        given = next((value for name, value in scope["headers"] if name == wanted), b"").decode("latin-1")
        known[_STATE_KEY] = given if _REQUEST_ID.fullmatch(given) else ids.token()
    return known[_STATE_KEY]
