"""The schema of a harness of its own, for tests that look beneath the adapter."""

from collections.abc import AsyncIterator

import pytest

from tests.adapters.redis.schema import Schema, opened
from tests.servers import RedisServer


@pytest.fixture
async def schema(redis_server: RedisServer) -> AsyncIterator[Schema]:
    async with opened(redis_server) as one:
        yield one
