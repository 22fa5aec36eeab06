"""What is counted of the requests to a server."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from dtq.adapters.memory.clock import settle
from dtq.adapters.redis import connect
from dtq.domain.errors import BrokerUnavailable
from dtq.domain.task import QueueName
from dtq.ports.backend import Backend, BackendOptions
from tests.contract.steps import LIMITS
from tests.factories import QUEUE, WORKER, an_admission
from tests.servers import RedisServer

SHORT = timedelta(seconds=1)

Operations = Counter[tuple[str, str]]


@pytest.fixture
def counted() -> Operations:
    return Counter()


@pytest.fixture
async def backend(own_redis_server: RedisServer, counted: Operations) -> AsyncIterator[Backend]:
    def count(operation: str, result: str) -> None:
        counted[operation, result] += 1

    backend = connect(own_redis_server.url, options=BackendOptions(call_timeout=SHORT, on_operation=count))
    yield backend
    await backend.server.close()


async def test_a_command_counts_under_its_name_and_a_script_under_its_own(
    backend: Backend, counted: Operations
) -> None:
    await backend.server.prepare()
    counted.clear()

    await backend.queues.names()
    await backend.broker.create([an_admission()], limits=LIMITS)
    await backend.broker.fetch(QUEUE, worker=WORKER, limit=1, reap_idle=None)
    await backend.surveyor.survey(limit=1)
    async with backend.events.subscribe():
        pass

    expected = {("hkeys", "ok"): 1, ("admit", "ok"): 1, ("fetch", "ok"): 1, ("pipeline", "ok"): 3}
    assert {**expected, ("subscribe", "ok"): 1} == counted


async def test_an_error_that_the_server_answers_counts_as_rejected(backend: Backend, counted: Operations) -> None:
    await backend.queues.register(QueueName("other"))

    assert 1 == counted["commit", "rejected"] == counted["script", "ok"] == counted["commit", "ok"]


async def test_what_could_not_be_sent_counts_as_unsent(
    backend: Backend, counted: Operations, own_redis_server: RedisServer
) -> None:
    own_redis_server.stop()
    await settle()

    with pytest.raises(BrokerUnavailable):
        await backend.queues.names()
    with pytest.raises(BrokerUnavailable):
        async with backend.events.subscribe():
            pass

    assert {("hkeys", "unsent"): 1, ("subscribe", "unsent"): 1} == counted


async def test_what_got_no_answer_counts_as_unknown(
    backend: Backend, counted: Operations, own_redis_server: RedisServer
) -> None:
    await backend.queues.names()
    own_redis_server.pause()

    with pytest.raises(BrokerUnavailable):
        await backend.queues.names()

    assert {("hkeys", "ok"): 1, ("hkeys", "unknown"): 1} == counted
    own_redis_server.resume()


async def test_what_is_canceled_on_its_way_counts_as_unknown(
    backend: Backend, counted: Operations, own_redis_server: RedisServer
) -> None:
    await backend.queues.names()
    own_redis_server.pause()
    asked = asyncio.ensure_future(backend.queues.names())
    await settle()

    asked.cancel()
    await asyncio.wait({asked})

    assert {("hkeys", "ok"): 1, ("hkeys", "unknown"): 1} == counted
    own_redis_server.resume()
