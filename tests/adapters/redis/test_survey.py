from uuid import uuid4

from dtq.adapters.redis import connect
from dtq.adapters.redis.client import Client
from dtq.adapters.redis.keys import Keyspace
from dtq.domain.task import QueueName, WorkerId
from dtq.ports.backend import BackendOptions
from tests.factories import a_heartbeat
from tests.servers import RedisServer

OPTIONS = BackendOptions()


async def test_what_a_stranger_has_spoilt_hides_nothing_else(redis_server: RedisServer) -> None:
    keys = Keyspace(f"survey-{uuid4().hex[:8]}")
    backend = connect(redis_server.url, options=BackendOptions(key_prefix=keys.prefix))
    client = Client(redis_server.url, timeout=OPTIONS.call_timeout)
    for name in ("good", "spoilt"):
        await backend.queues.register(QueueName(name))
    for worker in ("good", "spoilt"):
        await backend.workers.announce(a_heartbeat(worker_id=WorkerId(worker)), expires_in=OPTIONS.call_timeout)
    for key in (keys.stream(QueueName("spoilt"), 5), keys.worker(WorkerId("spoilt"))):
        await client.call("DEL", key)
        await client.call("SET", key, "x", "PX", 60_000)

    survey = await backend.surveyor.survey(limit=10)

    assert (["good"], ["good"]) == ([q.queue for q in survey.queues], [h.worker_id for h in survey.heartbeats])
    await client.close()
    await backend.server.close()
