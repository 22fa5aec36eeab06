"""What happens between two trips of one call, and calls that need more than one trip."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from dtq.adapters.redis import ready, store
from dtq.adapters.redis.client import Request
from dtq.domain.status import TaskStatus
from tests.adapters.redis.schema import Schema
from tests.contract.steps import cancel, held_lease, run, seconds, submit
from tests.factories import QUEUE, WORKER


async def test_a_queue_that_gets_a_delayed_task_meanwhile_is_not_retired(
    schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    await schema.harness.backend.queues.register(QUEUE)
    upkeep: Any = schema.harness.backend.upkeep
    client = upkeep._link.client  # noqa: SLF001 - the moment between its two trips
    send = client.send

    async def send_and_submit(request: Request, **named: Any) -> Any:
        reply = await send(request, **named)
        if request.command[0] == "HGET":
            await submit(schema.harness, delay=seconds(60))
        return reply

    monkeypatch.setattr(client, "send", send_and_submit)

    assert not await upkeep.retire(QUEUE)
    assert "1" == await schema.call("HGET", schema.keys.queues, QUEUE)


async def test_of_many_leases_each_is_extended(schema: Schema, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready, "MAX_ACTS", 2)
    tasks = [await run(schema.harness) for _ in range(5)]

    reports = await schema.harness.backend.broker.extend([held_lease(task) for task in tasks], worker=WORKER)

    assert [(task.lease, True) for task in tasks] == [(one.lease, one.kept) for one in reports]


async def test_a_wait_whose_streams_are_deleted_goes_on_with_new_ones(schema: Schema) -> None:
    await schema.harness.backend.queues.register(QUEUE)
    waiting = asyncio.ensure_future(
        schema.harness.backend.broker.wait(QUEUE, worker=WORKER, timeout=timedelta(seconds=20))
    )
    while "cmd=xreadgroup" not in await schema.call("CLIENT", "LIST"):
        assert not waiting.done()

    await schema.call("DEL", *schema.keys.streams(QUEUE))
    task = await submit(schema.harness)

    assert [task.receipt] == list(await waiting)


async def test_a_task_that_changes_while_a_list_is_made_is_not_listed_as_what_it_was(
    schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness, looks = schema.harness, store._records  # noqa: SLF001 - the moment between two looks
    task = await submit(harness)

    async def look_and_cancel(link: Any, ids: Any, fields: Any) -> Any:
        found = await looks(link, ids, fields)
        if fields == ("queue", "status"):
            await cancel(harness, task)
        return found

    monkeypatch.setattr(store, "_records", look_and_cancel)

    recent = await harness.backend.broker.recent(queue=None, status=TaskStatus.QUEUED, limit=9)

    assert ([], 0) == (list(recent.tasks), recent.unreadable)
