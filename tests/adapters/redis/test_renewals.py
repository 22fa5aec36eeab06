"""Between the look at a waiting task and its renewal the task may have ended."""

from typing import Any

import pytest

from dtq.adapters.redis.peeking import peek
from tests.adapters.redis.schema import Schema
from tests.contract.steps import cancel, now, seconds, submit
from tests.factories import QUEUE


async def test_a_task_that_ended_meanwhile_keeps_the_lifetimes_of_an_ended_one(
    schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = schema.harness
    task = await submit(harness, idempotency_key="k")
    await harness.advance(seconds(60))

    async def peek_and_cancel(*arguments: Any, **named: Any) -> Any:
        entries = await peek(*arguments, **named)
        if entries:
            await cancel(harness, task)
            for key in (schema.keys.task(task.task_id), schema.keys.idempotency(QUEUE, "k")):
                await schema.call("PEXPIRE", key, 30_000)
        return entries

    monkeypatch.setattr("dtq.adapters.redis.upkeep.peek", peek_and_cancel)

    renewed = await harness.backend.upkeep.keep_alive(QUEUE, cursor="", waiting_since=now(harness), limit=9)

    assert ("", 0) == renewed
    assert await schema.seconds_left(schema.keys.task(task.task_id)) <= 30
    assert await schema.seconds_left(schema.keys.idempotency(QUEUE, "k")) <= 30
