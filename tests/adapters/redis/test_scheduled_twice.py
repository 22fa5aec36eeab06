"""A task that is on loan and in the schedule as well, which no step of dtq brings about, is one task."""

import pytest

from dtq.adapters.redis.tally import EXACT
from dtq.domain.entry import milliseconds
from dtq.domain.findings import Kind
from tests.adapters.redis.schema import Schema
from tests.adapters.redis.test_examined_types import doctor_of, told
from tests.contract.steps import seconds, submit
from tests.factories import OPERATOR, QUEUE


@pytest.mark.parametrize("delayed", [1, EXACT + 1])
@pytest.mark.parametrize("noted", ["as it is", "7"])
async def test_it_counts_once_and_is_scheduled_once_again(schema: Schema, noted: str, delayed: int) -> None:
    *_, task = [await submit(schema.harness, delay=seconds(60)) for _ in range(delayed)]
    await schema.call("ZADD", schema.keys.claimed, 1, task.task_id)
    if noted == "7":
        await schema.call("HSET", schema.keys.queues, QUEUE, noted)

    report = await doctor_of(schema).repair(by=OPERATOR)

    expected = {Kind.MISTIMED: (1, 1)} | ({Kind.COUNT: (1, 1)} if noted == "7" else {})
    assert expected == {one.kind: (one.count, one.repaired) for one in report.groups}
    assert str(delayed) == await schema.call("HGET", schema.keys.queues, QUEUE)
    scores = [await schema.call("ZSCORE", name, task.task_id) for name in (schema.keys.schedule, schema.keys.claimed)]
    assert [str(milliseconds(task.available_at)), None] == scores
    assert (True, [], []) == told(await doctor_of(schema).examine())
