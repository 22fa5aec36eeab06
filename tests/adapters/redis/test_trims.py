"""What has no lifetime is trimmed when something is added to it."""

from dtq.domain.status import TaskStatus
from tests.adapters.redis.schema import Schema
from tests.contract.steps import bring_to, submit

LIMIT = 10_000


async def test_the_ten_thousand_newest_tasks_are_listed(schema: Schema) -> None:
    key = f"{schema.prefix}:tasks:recent"
    fill = "for i = 1, ARGV[1] do redis.call('ZADD', KEYS[1], i, 'old-' .. i) end"
    await schema.call("EVAL", fill, 1, key, LIMIT)

    task = await submit(schema.harness)

    assert LIMIT == await schema.call("ZCARD", key)
    assert ["old-2"] == await schema.call("ZRANGE", key, 0, 0)
    assert [task.task_id] == await schema.call("ZRANGE", key, -1, -1)


async def test_the_dead_letters_are_trimmed_to_about_their_limit(schema: Schema) -> None:
    key = f"{schema.prefix}:stream:dead-letter"
    fill = "for i = 1, ARGV[1] do redis.call('XADD', KEYS[1], '*', 'task_id', 'old') end"
    await schema.call("EVAL", fill, 1, key, LIMIT + 500)

    task = await bring_to(schema.harness, TaskStatus.DEAD_LETTERED)

    assert LIMIT <= await schema.call("XLEN", key) <= LIMIT + 100
    assert task.dlq_entry_id == (await schema.call("XREVRANGE", key, "+", "-", "COUNT", 1))[0][0]
