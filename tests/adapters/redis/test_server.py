"""What is found out about a server before it is used."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from dtq.adapters.redis import connect
from dtq.adapters.redis.client import Client
from dtq.adapters.redis.keys import Keyspace
from dtq.adapters.redis.server import memory_problems, persistence_warnings, unusable
from dtq.domain.errors import UnsuitableBroker
from dtq.ports.backend import Backend, BackendOptions
from tests.servers import RedisServer

OPTIONS = BackendOptions(key_prefix="checks")


@asynccontextmanager
async def _backend(url: str) -> AsyncIterator[Backend]:
    backend = connect(url, options=OPTIONS)
    try:
        yield backend
    finally:
        await backend.server.close()


@asynccontextmanager
async def _client(url: str) -> AsyncIterator[Client]:
    client = Client(url, timeout=OPTIONS.call_timeout)
    try:
        yield client
    finally:
        await client.close()


@pytest.mark.parametrize(
    ("info", "is_usable"),
    [
        ({"redis_version": "6.2.14"}, False),
        ({"redis_version": "7.0.0"}, True),
        ({"redis_version": "10.1.0"}, True),
        ({"redis_version": "7.2.4", "valkey_version": "7.2.9"}, False),
        ({"redis_version": "7.2.4", "valkey_version": "8.0.1"}, True),
        ({"redis_version": "8.2.3", "role": "slave"}, False),
        ({"redis_version": "8.2.3", "cluster_enabled": "1"}, False),
        ({}, False),
    ],
)
def test_a_server_must_be_new_enough_and_a_primary(info: Mapping[str, str], *, is_usable: bool) -> None:
    assert is_usable == (not [*unusable(info, Keyspace("dtq"))])


def test_a_cluster_is_usable_with_a_hash_tag() -> None:
    info = {"redis_version": "8.2.3", "cluster_enabled": "1"}

    (problem,) = unusable(info, Keyspace("dtq"))

    assert "DTQ_KEY_PREFIX" in problem
    assert "{dtq}" in problem
    assert [] == [*unusable(info, Keyspace("{dtq}"))]


@pytest.mark.parametrize(
    ("limit", "policy", "problems"),
    [("0", "allkeys-lru", 0), ("100", "noeviction", 0), ("100", "volatile-ttl", 1)],
)
def test_a_server_that_evicts_is_a_problem(limit: str, policy: str, problems: int) -> None:
    assert problems == len([*memory_problems({"maxmemory": limit, "maxmemory_policy": policy})])


def test_what_a_crash_would_lose_is_a_warning() -> None:
    assert [] == [*persistence_warnings({"aof_enabled": "1", "aof_last_write_status": "ok"})]
    assert 1 == len([*persistence_warnings({"aof_enabled": "0"})])
    assert 2 == len([*persistence_warnings({"aof_last_write_status": "err", "rdb_last_bgsave_status": "err"})])


async def test_an_evicting_server_is_reported(own_redis_server: RedisServer) -> None:
    async with _backend(own_redis_server.url) as backend, _client(own_redis_server.url) as client:
        await client.call("CONFIG", "SET", "maxmemory", "1gb")
        await client.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")

        facts = await backend.server.inspect()

        assert ["noeviction" in problem for problem in facts.problems] == [True]
        await backend.server.prepare()


async def test_a_server_can_be_prepared_while_its_memory_is_full(own_redis_server: RedisServer) -> None:
    async with _backend(own_redis_server.url) as backend, _client(own_redis_server.url) as client:
        await client.call("CONFIG", "SET", "maxmemory", "1")

        await backend.server.prepare()


@pytest.mark.parametrize(
    ("rules", "named"),
    [
        ("+@all -xclaim", "xclaim"),
        ("+@all -publish", "publish"),
        ("+@all -subscribe", "subscribe"),
        ("+@all -evalsha", "evalsha"),
        ("+@all -info", "info"),
        ("+@all resetchannels &other", "channel"),
    ],
)
async def test_what_a_user_may_not_do_is_found_out_before_work_begins(
    own_redis_server: RedisServer, rules: str, named: str
) -> None:
    async with _client(own_redis_server.url) as client:
        await client.call("ACL", "SETUSER", "worker", "on", ">pass", "~checks:*", "&checks:*", *rules.split())
        async with _backend(own_redis_server.url.replace("//", "//worker:pass@")) as backend:
            with pytest.raises(UnsuitableBroker) as caught:
                await backend.server.prepare()

        assert named in str(caught.value).lower()
        assert [] == await client.call("KEYS", "*")


async def test_a_user_with_its_own_keys_and_channels_is_enough(own_redis_server: RedisServer) -> None:
    async with _client(own_redis_server.url) as client:
        await client.call("ACL", "SETUSER", "worker", "on", ">pass", "~checks:*", "&checks:*", "+@all")
        async with _backend(own_redis_server.url.replace("//", "//worker:pass@")) as backend:
            await backend.server.prepare()


async def test_a_replica_is_refused(own_redis_server: RedisServer) -> None:
    async with _backend(own_redis_server.url) as backend, _client(own_redis_server.url) as client:
        await client.call("REPLICAOF", "127.0.0.1", "1")

        with pytest.raises(UnsuitableBroker, match="replica"):
            await backend.server.prepare()
