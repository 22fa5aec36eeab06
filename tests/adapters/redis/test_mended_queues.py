"""A list of queues that was deleted is made again by one repair, with its counts."""

from dtq.domain.findings import Kind
from dtq.domain.task import QueueName
from tests.adapters.redis.schema import Schema
from tests.adapters.redis.test_examined_types import doctor_of, told
from tests.contract.steps import seconds, submit
from tests.factories import OPERATOR, QUEUE


async def test_queues_that_are_registered_again_get_their_counts(schema: Schema) -> None:
    for queue in (QUEUE, QueueName("mail")):
        await submit(schema.harness, queue=queue, delay=seconds(60))
        await submit(schema.harness, queue=queue)
    await schema.call("DEL", schema.keys.queues)

    report = await doctor_of(schema).repair(by=OPERATOR)

    expected = {Kind.UNREGISTERED: (2, 2, 0), Kind.COUNT: (2, 2, 0)}
    assert expected == {one.kind: (one.count, one.repaired, one.left) for one in report.groups}
    assert report.is_healthy
    assert (True, [], []) == told(await doctor_of(schema).examine())


async def test_a_queue_without_delayed_tasks_needs_no_other_count(schema: Schema) -> None:
    await submit(schema.harness)
    await schema.call("DEL", schema.keys.queues)

    assert [Kind.UNREGISTERED] == [one.kind for one in (await doctor_of(schema).repair(by=OPERATOR)).groups]
