from collections.abc import Iterator

import pytest
from redis import Redis

from benchmarks.redis_server import RECOMMENDED, directives
from dtq.adapters.redis import connect
from dtq.adapters.redis.keys import Keyspace
from dtq.domain.admission import BrokerLimits
from dtq.ports.backend import BackendOptions
from tests.factories import an_admission
from tests.servers import RedisServer, start_own


@pytest.fixture
def configured_server() -> Iterator[RedisServer]:
    """A server as deploy/redis.conf has it."""
    with start_own(arguments=directives(RECOMMENDED)) as server:
        yield server


def test_each_directive_is_known_to_the_server(configured_server: RedisServer) -> None:
    arguments = directives(RECOMMENDED)
    wanted = {name.removeprefix("--"): value for name, value in zip(arguments[::2], arguments[1::2], strict=True)}

    with Redis.from_url(configured_server.url, decode_responses=True) as redis:
        found = {name: redis.config_get(name)[name] for name in wanted}

    assert wanted == found


async def test_the_record_of_a_task_with_a_small_payload_is_one_packed_block(configured_server: RedisServer) -> None:
    backend = connect(configured_server.url, options=BackendOptions())
    admission = an_admission(payload=f'{{"x": "{"x" * 200}"}}')

    await backend.broker.create([admission], limits=BrokerLimits())

    with Redis.from_url(configured_server.url, decode_responses=True) as redis:
        assert redis.object("encoding", Keyspace("dtq").task(admission.change.after.task_id)) == "listpack"
    await backend.server.close()
