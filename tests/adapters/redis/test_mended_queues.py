"""A list of queues that was deleted is made again by one repair, with its counts."""

import pytest

from dtq.adapters.redis.tally import EXACT
from dtq.adapters.redis.wire import pairs
from dtq.domain.findings import Kind
from dtq.domain.task import QueueName
from tests.adapters.redis.schema import Schema
from tests.adapters.redis.test_examined_types import doctor_of, told
from tests.contract.steps import seconds, submit
from tests.factories import OPERATOR, QUEUE

LONELY = QueueName("lonely")


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


@pytest.mark.parametrize("delayed", [2, EXACT + 1])
async def test_a_queue_that_has_delayed_tasks_alone_is_registered_again(schema: Schema, delayed: int) -> None:
    for _ in range(delayed):
        await submit(schema.harness, queue=LONELY, delay=seconds(3000))
    await submit(schema.harness, delay=seconds(3000))
    await schema.call("HDEL", schema.keys.queues, LONELY)

    report = await doctor_of(schema).repair(by=OPERATOR)

    expected = {Kind.UNREGISTERED: (1, 1, 0), Kind.COUNT: (1, 1, 0)}
    assert expected == {one.kind: (one.count, one.repaired, one.left) for one in report.groups}
    assert [] == [*report.denied]
    assert str(delayed) == await schema.call("HGET", schema.keys.queues, LONELY)
    assert (True, [], []) == told(await doctor_of(schema).examine())


async def test_a_delayed_task_of_another_queue_than_it_was_counted_for_is_counted_there(schema: Schema) -> None:
    task = await submit(schema.harness, delay=seconds(3000))
    await schema.call("HSET", schema.keys.task(task.task_id), "queue", LONELY)

    report = await doctor_of(schema).repair(by=OPERATOR)

    expected = {Kind.UNREGISTERED: (1, 1, 0), Kind.COUNT: (2, 2, 0)}
    assert expected == {one.kind: (one.count, one.repaired, one.left) for one in report.groups}
    assert {QUEUE: "0", LONELY: "1"} == pairs(await schema.call("HGETALL", schema.keys.queues))
    assert (True, [], []) == told(await doctor_of(schema).examine())
