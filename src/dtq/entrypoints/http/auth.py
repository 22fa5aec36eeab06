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
from dtq.domain.errors import DtqError, Unauthorized
from dtq.entrypoints.http.stream_origin import OriginNotAllowed, Origins
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
    """Lets through who has the key, and everybody where there is none; but no page of an origin that is not allowed.

    Who is refused is logged, and not audited: strangers could flush the trail.
    """

    key: str
    origins: Origins = Origins()
    ids: Ids
    observer: Observer

    def let_in(self, connection: AnyConnection, handler: BaseRouteHandler) -> None:
        """Stand before a handler whose `opt` names its action, and remember who comes in.

        Raises OriginNotAllowed, or Unauthorized.
        """
        if _only_asks_how(connection):
            return
        scope, action = connection.scope, handler.opt["action"]
        self._refuse_foreign(connection, action=action)
        scope["state"][_ACTOR_KEY] = self.admit(scope, action=action)

    def keep_out(self, connection: AnyConnection, handler: BaseRouteHandler) -> None:
        """Stand before a handler that needs no key; if its `opt` names an action, not every page may ask for it.

        Raises OriginNotAllowed.
        """
        if "open_action" in handler.opt and not _only_asks_how(connection):
            self._refuse_foreign(connection, action=handler.opt["open_action"])

    def _refuse_foreign(self, connection: AnyConnection, *, action: str) -> None:
        try:
            self.origins.check(connection.headers)
        except OriginNotAllowed as error:
            self._tell(error, scope=connection.scope, action=action)
            raise

    def admit(self, scope: Mapping[str, Any], *, action: str) -> Actor:
        """Return who asks for *action*, for the audit trail. Raises Unauthorized."""
        request_id = request_id_of(scope, ids=self.ids)
        if not self.key:
            return Actor(name=f"anonymous@{peer_of(scope)}", request_id=request_id)
        expected = os.fsencode(self.key)
        if not _is_given(expected, scope):
            error = Unauthorized(f"this needs the right key in the header {KEY_HEADER}")
            self._tell(error, scope=scope, action=action)
            raise error
        return Actor(name=f"api-key:{hashlib.sha256(expected).hexdigest()[:8]}", request_id=request_id)

    def _tell(self, error: DtqError, *, scope: Mapping[str, Any], action: str) -> None:
        request_id = request_id_of(scope, ids=self.ids)
        self.observer.noticed("refused", action=action, code=error.code, peer=peer_of(scope), request_id=request_id)


def _only_asks_how(connection: AnyConnection) -> bool:
    """Tell whether a request only asks what may be asked: that is no secret, and Litestar answers it by itself."""
    scope = connection.scope
    return scope["type"] == ScopeType.HTTP and scope["method"] == HttpMethod.OPTIONS


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
    """Return the id of a request: the caller's one if it is harmless, otherwise a new one, the same each time."""
    known: dict[str, str] = scope["state"]
    if _STATE_KEY not in known:
        wanted = REQUEST_ID_HEADER.lower().encode()
        values = [value for name, value in scope["headers"] if name == wanted]
        given = values[0].decode("latin-1") if len(values) == 1 else ""
        known[_STATE_KEY] = given if _REQUEST_ID.fullmatch(given) else ids.token()
    return known[_STATE_KEY]
