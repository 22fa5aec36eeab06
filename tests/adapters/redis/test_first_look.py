"""The first look at stored tasks, which goes over all of them again and again, reads no more than it needs."""

from collections.abc import Sequence
from typing import Any

import pytest

from dtq.adapters.redis.store import read_many
from dtq.domain.status import TaskStatus
from tests.adapters.redis.schema import Schema
from tests.contract.steps import all_strays, bring_to, claim_due, now, seconds, submit


async def test_a_task_that_has_its_place_or_has_ended_is_not_read(
    schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    for status in TaskStatus:
        await bring_to(schema.harness, status)
    await submit(schema.harness, delay=seconds(1))
    await claim_due(schema.harness, at=now(schema.harness) + seconds(2), limit=1)
    stray = await submit(schema.harness)
    assert stray.receipt is not None
    stream = schema.keys.stream(stray.receipt.queue, stray.receipt.priority)
    await schema.call("XDEL", stream, stray.receipt.entry_id)
    read: list[str] = []

    async def noted(link: Any, ids: Sequence[Any], fields: Sequence[str]) -> Any:
        read.extend(ids)
        return await read_many(link, ids, fields)

    monkeypatch.setattr("dtq.adapters.redis.upkeep.read_many", noted)

    strays = await all_strays(schema.harness)

    assert {stray.task_id} == {*read}
    assert [stray.task_id] == [task.task_id for task in strays]
