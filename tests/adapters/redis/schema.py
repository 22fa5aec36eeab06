"""An adapter, and the server beneath it as any other client sees it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from dtq.adapters.redis.client import Client
from dtq.adapters.redis.keys import Keyspace
from dtq.adapters.redis.wire import pairs
from dtq.domain.task import Task
from dtq.ports.backend import BackendOptions
from tests.contract.harness import Harness
from tests.contract.redis_harness import open_harness
from tests.servers import RedisServer

OpenOn = Callable[..., AbstractAsyncContextManager[Harness]]
"""Opens a harness with given options on a given server."""

UseUp = Callable[[str], Awaitable[None]]
"""Takes the last id of a stream that it is given."""


class Schema:
    """What stands in Redis while a harness acts."""

    def __init__(self, harness: Harness, client: Client) -> None:
        self.harness = harness
        self.keys = Keyspace(harness.options.key_prefix)
        self.prefix = self.keys.prefix
        self.client = client
        self.call = client.call

    async def hash(self, key: str) -> dict[str, str]:
        return pairs(await self.call("HGETALL", key))

    async def entries(self, stream: str) -> list[tuple[str, dict[str, str]]]:
        return [(entry_id, pairs(fields)) for entry_id, fields in await self.call("XRANGE", stream, "-", "+")]

    async def seconds_left(self, key: str) -> float:
        return float(await self.call("PTTL", key)) / 1000

    async def record(self, task: Task) -> dict[str, str]:
        return await self.hash(f"{self.prefix}:task:{task.task_id}")


@asynccontextmanager
async def opened(server: RedisServer, *, harnesses: OpenOn = open_harness) -> AsyncIterator[Schema]:
    """Open a schema of its own on a server, with a harness of this kind."""
    options = BackendOptions()
    client = Client(server.url, timeout=options.call_timeout)
    async with harnesses(options=options, server=server) as harness:
        yield Schema(harness, client)
    await client.close()
