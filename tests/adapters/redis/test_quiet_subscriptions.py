"""A subscription that hears nothing asks whether its server is still there, and ends where it is not."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from dtq.adapters.redis import connect, subscription
from dtq.adapters.redis.client import Client
from dtq.domain.errors import BrokerUnavailable
from dtq.ports.backend import Backend, BackendOptions
from tests.factories import an_event
from tests.servers import RedisServer

SHORT = timedelta(seconds=1)
PLENTY_S = 20


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscription, "QUIET_S", 0.05)


@pytest.fixture
async def backend(own_redis_server: RedisServer) -> AsyncIterator[Backend]:
    backend = connect(own_redis_server.url, options=BackendOptions(call_timeout=SHORT))
    yield backend
    await backend.server.close()


@pytest.fixture
async def observer(own_redis_server: RedisServer) -> AsyncIterator[Client]:
    client = Client(own_redis_server.url, timeout=SHORT)
    yield client
    await client.close()


async def test_one_whose_server_answers_goes_on(backend: Backend, observer: Client) -> None:
    async with asyncio.timeout(PLENTY_S), backend.events.subscribe() as events:
        coming = asyncio.ensure_future(anext(events))
        while "cmdstat_ping" not in await observer.call("INFO", "commandstats"):
            assert not coming.done()

        event = an_event()
        await backend.events.publish(event)

        assert event == await coming


async def test_one_whose_server_does_not_answer_ends(backend: Backend, own_redis_server: RedisServer) -> None:
    async with asyncio.timeout(PLENTY_S), backend.events.subscribe() as events:
        own_redis_server.pause()

        with pytest.raises(BrokerUnavailable):
            await anext(events)

        own_redis_server.resume()
