"""A stream that has given its last id takes nothing more: told of by name, and left to a person."""

import pytest

from dtq.domain.facts import LAST_ENTRY_ID
from dtq.domain.findings import Kind
from dtq.domain.task import QueueName
from tests.adapters.redis.schema import Schema, UseUp
from tests.adapters.redis.test_examined_types import doctor_of, told
from tests.contract.steps import submit, take
from tests.factories import OPERATOR, QUEUE


async def test_a_stream_that_is_used_up_is_told_of_and_left(schema: Schema, kept: str, use_up: UseUp) -> None:
    await use_up(kept)

    report = await doctor_of(schema).repair(by=OPERATOR)

    assert {Kind.EXHAUSTED: (1, 0, 1)} == {one.kind: (one.count, one.repaired, one.left) for one in report.groups}
    assert [kept] == [one.subject for group in report.groups for one in group.examples]
    assert "anew" in report.groups[0].reasons[0]


async def test_where_the_audit_trail_is_used_up_the_first_repair_is_the_last(schema: Schema) -> None:
    for queue in (QUEUE, QueueName("mail")):
        await submit(schema.harness, queue=queue)
    await schema.call("DEL", schema.keys.queues)
    await schema.call("XADD", schema.keys.audit, LAST_ENTRY_ID, "a", "b")

    groups = {one.kind: one for one in (await doctor_of(schema).repair(by=OPERATOR)).groups}

    left = groups[Kind.UNREGISTERED]
    assert (0, 2) == (left.repaired, left.left)
    assert "it is repaired, but the audit trail refused" in left.reasons[0]
    assert 1 == await schema.call("HLEN", schema.keys.queues)


@pytest.mark.parametrize("is_read", [False, True])
async def test_a_queue_whose_stream_is_used_up_takes_tasks_again(schema: Schema, *, is_read: bool) -> None:
    await schema.harness.backend.queues.register(QUEUE)
    waiting = await submit(schema.harness)
    stream = schema.keys.stream(QUEUE, waiting.priority)
    await schema.call("XADD", stream, LAST_ENTRY_ID, "a", "b")
    if is_read:
        await take(schema.harness)
    with pytest.raises(AssertionError, match="exhausted"):
        await submit(schema.harness)
    assert Kind.EXHAUSTED in {one.kind for one in (await doctor_of(schema).examine()).groups}

    await schema.call("DEL", stream)

    report = await doctor_of(schema).repair(by=OPERATOR)
    assert ({Kind.GROUP, Kind.HOMELESS}, True) == ({one.kind for one in report.groups}, report.is_healthy)
    late = await submit(schema.harness)
    assert [waiting.task_id, late.task_id] == [one.fields["task_id"] for one in await take(schema.harness)]
    assert (True, [], []) == told(await doctor_of(schema).examine())
