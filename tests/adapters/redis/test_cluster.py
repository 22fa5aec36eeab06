"""One slot of a cluster: a hash-tagged prefix keeps everything on one server, which is found from any of them."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import cast

import pytest

from dtq.adapters.redis import connect
from dtq.adapters.redis.client import Client
from dtq.domain.errors import BrokerUnavailable, UnsuitableBroker
from dtq.ports.answers import Applied
from dtq.ports.backend import Backend, BackendOptions
from tests.contract.steps import LIMITS
from tests.factories import QUEUE, WORKER, an_admission
from tests.servers import RedisServer
from tests.servers.kinds import Kind
from tests.servers.process import free_port

SLOTS = ((0, 8191), (8192, 16383))
TIMEOUT = timedelta(seconds=5)
# the slot of this tag is on the second server, and the URL names the first
OPTIONS = BackendOptions(key_prefix="{dtq}", call_timeout=TIMEOUT)


@pytest.fixture
def servers(redis_server: RedisServer) -> Iterator[list[RedisServer]]:
    # the members of a cluster name each other's addresses, which mean nothing outside of containers
    kind: Kind = "redis82" if redis_server.kind in {"container", "url"} else cast("Kind", redis_server.kind)
    with ExitStack() as stack:
        arguments = [("--cluster-enabled", "yes", "--cluster-port", str(free_port())) for _ in SLOTS]
        yield [stack.enter_context(RedisServer.start(kind, arguments=one)) for one in arguments]


@pytest.fixture
async def cluster(servers: list[RedisServer]) -> list[RedisServer]:
    clients = [Client(server.url, timeout=TIMEOUT) for server in servers]
    for client, (first, last) in zip(clients, SLOTS, strict=True):
        await client.call("CLUSTER", "ADDSLOTSRANGE", first, last)
    bus = (await clients[1].call("CONFIG", "GET", "cluster-port"))[1]
    await clients[0].call("CLUSTER", "MEET", "127.0.0.1", servers[1].port, bus)
    for client in clients:
        await _until_ok(client)
        await client.close()
    return servers


@pytest.fixture
async def backend(cluster: list[RedisServer]) -> AsyncIterator[Backend]:
    backend = connect(cluster[0].url, options=OPTIONS)
    yield backend
    await backend.server.close()


async def test_work_is_done_on_the_server_that_has_the_slot(backend: Backend, cluster: list[RedisServer]) -> None:
    await backend.server.prepare()
    await backend.queues.register(QUEUE)

    (created,) = await backend.broker.create([an_admission(now=backend.clock.now())], limits=LIMITS)
    (delivery,) = (await backend.broker.fetch(QUEUE, worker=WORKER, limit=9, reap_idle=None)).deliveries

    assert isinstance(created, Applied)
    assert created.task == delivery.task
    assert [created.task.task_id] == [
        task.task_id for task in (await backend.broker.recent(queue=QUEUE, status=None, limit=9)).tasks
    ]
    keys = {server.port: await _keys(server) for server in cluster}
    assert [] == keys[cluster[0].port]
    assert keys[cluster[1].port]


async def test_when_the_server_that_had_the_slot_is_gone_the_one_of_the_url_is_asked_again(
    backend: Backend, cluster: list[RedisServer]
) -> None:
    await backend.server.prepare()
    await backend.queues.register(QUEUE)
    cluster[1].kill()
    await _take_over(cluster[0])

    with pytest.raises(BrokerUnavailable):
        await backend.queues.names()

    await backend.queues.register(QUEUE)
    assert [QUEUE] == list(await backend.queues.names())
    assert await _keys(cluster[0])


async def test_without_a_hash_tag_a_cluster_is_refused(cluster: list[RedisServer]) -> None:
    backend = connect(cluster[0].url, options=BackendOptions())

    with pytest.raises(UnsuitableBroker, match="DTQ_KEY_PREFIX"):
        await backend.server.prepare()

    await backend.server.close()


async def _take_over(server: RedisServer) -> None:
    """Let one server have the slots of the other one, as a failover would."""
    client = Client(server.url, timeout=TIMEOUT)
    await client.call("CLUSTER", "DELSLOTSRANGE", *SLOTS[1])
    await client.call("CLUSTER", "ADDSLOTSRANGE", *SLOTS[1])
    await _until_ok(client)
    await client.close()


async def _until_ok(client: Client) -> None:
    async with asyncio.timeout(30):
        while "cluster_state:ok" not in await client.call("CLUSTER", "INFO"):
            pass


async def _keys(server: RedisServer) -> list[str]:
    client = Client(server.url, timeout=TIMEOUT)
    keys: list[str] = await client.call("KEYS", "*")
    await client.close()
    return keys
