"""What tests share that look beneath the adapter: a schema, and a doctor that does not wait."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from dtq.application import rounds
from dtq.domain.facts import LAST_ENTRY_ID
from tests.adapters.redis.schema import Schema, UseUp, opened
from tests.servers import RedisServer


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the doctor look a second time at once."""
    monkeypatch.setattr(rounds, "SECOND_LOOK", timedelta())


@pytest.fixture
async def schema(redis_server: RedisServer) -> AsyncIterator[Schema]:
    async with opened(redis_server) as one:
        yield one


@pytest.fixture(params=["dead_letters", "audit"])
def kept(request: pytest.FixtureRequest, schema: Schema) -> str:
    """Name each stream that is no queue's."""
    return str(getattr(schema.keys, request.param))


@pytest.fixture(params=[True, False], ids=["deleted", "standing"])
def use_up(request: pytest.FixtureRequest, schema: Schema) -> UseUp:
    """Have a stream give its last id, to an entry that is deleted or stands."""

    async def use_up(stream: str) -> None:
        await schema.call("XADD", stream, LAST_ENTRY_ID, "task_id", "f" * 32)
        if request.param:
            await schema.call("XDEL", stream, LAST_ENTRY_ID)

    return use_up
