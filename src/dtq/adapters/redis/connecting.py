"""How a connection is made: what its URL says, and what dtq relies on whatever the URL says."""

from datetime import timedelta
from typing import Any

from redis.asyncio.connection import AbstractConnection, Connection, parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff


def connection_settings(url: str, *, timeout: timedelta) -> tuple[type[AbstractConnection], dict[str, Any]]:
    """Read the URL; what dtq relies on is fixed here, whatever the URL's query says. Raises ValueError."""
    settings: dict[str, Any] = dict(parse_url(url))
    kind = settings.pop("connection_class", Connection)
    settings |= {
        # every request has one deadline, connecting included; timeouts of the driver would only add to it
        "socket_timeout": None,
        "socket_connect_timeout": timeout.total_seconds(),
        "retry": Retry(NoBackoff(), 0),
        "health_check_interval": 0,
        "protocol": 2,
        "legacy_responses": False,
        "decode_responses": True,
        # what a stranger wrote must not break the reply that carries it
        "encoding_errors": "replace",
    }
    try:
        kind(**settings)
    except TypeError as error:
        raise ValueError(f"the broker's URL has a parameter that is not known: {error}") from error
    return kind, settings


async def opened(connection: AbstractConnection) -> AbstractConnection:
    """Connect, and return the connection."""
    try:
        await connection.connect()  # type: ignore[no-untyped-call]  # redis-py does not type it
    except BaseException:
        # a cancellation may have come in the middle of the handshake
        await connection.disconnect(nowait=True)
        raise
    return connection
