"""One connection that listens to channels."""

from collections.abc import Sequence
from typing import Final

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError

from dtq.domain.errors import BrokerUnavailable

QUIET_S: Final = 15.0
"""After how long a silence the server is asked whether it is still there."""


class Subscription:
    """What is published on some channels, in order, as an iterator that ends only with an error."""

    def __init__(self, connection: AbstractConnection, *, timeout: float) -> None:
        self._connection = connection
        self._timeout = timeout

    async def begin(self, channels: Sequence[str]) -> None:
        """Subscribe, and return when the server has confirmed it."""
        await self._connection.send_command("SUBSCRIBE", *channels)
        for _ in channels:
            await self._connection.read_response()

    def __aiter__(self) -> "Subscription":
        return self

    async def __anext__(self) -> str:
        """Return the next message. Raises BrokerUnavailable where the connection is lost or silent."""
        try:
            while True:
                reply = await self._connection.read_response(timeout=QUIET_S)
                if reply is None:
                    await self._connection.send_command("PING")
                    reply = await self._connection.read_response(timeout=self._timeout)
                if reply is None:
                    raise BrokerUnavailable("the broker has gone silent")
                if reply[0] == "message":
                    return str(reply[2])
        except (RedisError, OSError) as error:
            raise BrokerUnavailable("the subscription to the broker's channels was lost") from error
