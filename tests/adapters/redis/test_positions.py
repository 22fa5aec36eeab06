"""Groups whose position is beyond the end of their stream, which no command but one by hand brings about."""

from collections.abc import Sequence
from typing import Any

import pytest

from dtq.adapters.redis.link import Link
from dtq.domain.facts import ReadingFact
from dtq.domain.task import Task
from tests.adapters.redis.schema import Schema
from tests.contract.examining import told
from tests.contract.steps import submit, take, take_one
from tests.factories import QUEUE

BEYOND = "9999999999999-0"


async def ahead(schema: Schema) -> list[int]:
    """The priorities that are found to be ahead, at the first look and at the second."""
    (fact,) = [one for one in await told(schema.harness) if isinstance(one, ReadingFact)]
    (again,) = await schema.harness.backend.examiner.again([fact])
    assert fact == again
    return [*fact.ahead]


async def mislead(schema: Schema, task: Task) -> None:
    await schema.call("XGROUP", "SETID", schema.keys.stream(QUEUE, task.priority), "workers", BEYOND)


async def test_a_group_that_has_read_all_is_not_ahead(schema: Schema) -> None:
    await take_one(schema.harness, await submit(schema.harness))
    await schema.harness.backend.queues.register(QUEUE)

    assert [] == await ahead(schema)


async def test_a_group_that_is_ahead_reads_on_after_what_somebody_owns(schema: Schema) -> None:
    owned = await submit(schema.harness)
    held = (await take_one(schema.harness, owned)).receipt
    before = await submit(schema.harness)
    await mislead(schema, owned)
    after = await submit(schema.harness)
    assert [] == list(await take(schema.harness))
    assert [owned.priority] == await ahead(schema)

    assert await schema.harness.backend.examiner.rewind(QUEUE, priority=owned.priority)

    assert [] == await ahead(schema)
    assert [before.task_id, after.task_id] == [one.fields["task_id"] for one in await take(schema.harness)]
    assert held not in [one.receipt for one in await take(schema.harness)]
    assert not await schema.harness.backend.examiner.rewind(QUEUE, priority=owned.priority)


async def test_a_group_of_which_nobody_owns_anything_begins_anew(schema: Schema) -> None:
    await schema.harness.backend.queues.register(QUEUE)
    task = await submit(schema.harness)
    await mislead(schema, task)

    assert await schema.harness.backend.examiner.rewind(QUEUE, priority=task.priority)

    assert [task.task_id] == [one.fields["task_id"] for one in await take(schema.harness)]


async def test_what_is_read_meanwhile_is_not_delivered_again(schema: Schema, monkeypatch: pytest.MonkeyPatch) -> None:
    await schema.harness.backend.queues.register(QUEUE)
    task = await submit(schema.harness)
    await mislead(schema, task)
    run = Link.run

    async def overtaken(link: Link, commands: Any, *, keys: Sequence[str]) -> Any:
        replies = await run(link, commands, keys=keys)
        await schema.call("XGROUP", "SETID", schema.keys.stream(QUEUE, task.priority), "workers", "0")
        await take_one(schema.harness, task)
        return replies

    monkeypatch.setattr(Link, "run", overtaken)
    assert not await schema.harness.backend.examiner.rewind(QUEUE, priority=task.priority)
    assert [] == list(await take(schema.harness))
