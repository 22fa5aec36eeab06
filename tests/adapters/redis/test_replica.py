"""A server that has become a replica, as after a failover, says what is wrong with it."""

from redis import Redis

from dtq.adapters.redis import connect
from dtq.ports.backend import BackendOptions
from tests.servers import RedisServer
from tests.servers.process import LOOPBACK, free_port


async def test_a_replica_is_inspected_and_told_from_a_primary(own_redis_server: RedisServer) -> None:
    backend = connect(own_redis_server.url, options=BackendOptions())
    primary = await backend.server.inspect()
    await backend.server.prepare()
    with Redis.from_url(own_redis_server.url) as own:
        own.execute_command("REPLICAOF", LOOPBACK, free_port())

    replica = await backend.server.inspect()
    await backend.server.close()

    assert (True, ()) == (primary.is_primary, primary.problems)
    assert (False, True) == (replica.is_primary, "the broker is a replica: dtq needs the primary" in replica.problems)
