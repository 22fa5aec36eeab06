from datetime import timedelta

from dtq.domain.task import QueueName, WorkerId
from tests.adapters.redis.schema import Schema
from tests.factories import a_heartbeat

TERM = timedelta(seconds=15)


async def test_what_a_stranger_has_spoilt_hides_nothing_else(schema: Schema) -> None:
    backend = schema.harness.backend
    for name in ("good", "spoilt"):
        await backend.queues.register(QueueName(name))
        await backend.workers.announce(a_heartbeat(worker_id=WorkerId(name)), expires_in=TERM)
    for key in (schema.keys.stream(QueueName("spoilt"), 5), schema.keys.worker(WorkerId("spoilt"))):
        await schema.call("SET", key, "x", "PX", 60_000)

    survey = await backend.surveyor.survey(limit=10)

    assert (["good"], ["good"]) == ([q.queue for q in survey.queues], [h.worker_id for h in survey.heartbeats])
