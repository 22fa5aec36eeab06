"""A look at one task on a server: of one moment, without a write, and of the same cost however full a queue is."""

from collections import Counter
from typing import Any

import pytest

from dtq.adapters.redis.locating import LOOKS
from dtq.domain import lifecycle
from dtq.domain.errors import BrokerUnavailable
from dtq.domain.status import TaskStatus
from dtq.domain.task import Task, TaskId
from tests.adapters.redis.schema import Schema
from tests.contract.harness import Harness
from tests.contract.steps import bring_to, create, make, now, seconds, submit, take
from tests.factories import QUEUE, a_token, an_admission

READS = {
    *("evalsha", "hmget", "hget", "exists", "xlen", "xpending", "xrange", "xinfo|groups", "zscore", "time"),
    *("config|resetstat", "info"),
}
MANY = 300
RECORD = "_record"


class Meddling:
    """A locator, each of whose first reads of a record is followed by a step of the task."""

    def __init__(self, harness: Harness, *, times: int) -> None:
        self.locator: Any = harness.backend.locator
        self.reads = 0
        self._harness = harness
        self._times = times
        # the moment between its two looks is nowhere else to be had
        self._read = getattr(self.locator, RECORD)
        setattr(self.locator, RECORD, self._record)

    async def _record(self, task_id: TaskId) -> Task | None:
        task: Task | None = await self._read(task_id)
        self.reads += 1
        if task is not None and self.reads <= self._times:
            await self._move(task)
        return task

    async def _move(self, task: Task) -> None:
        harness = self._harness
        if task.status is TaskStatus.PENDING:
            await make(harness, lifecycle.promote(task, now=task.available_at, token=a_token()))
        else:
            await make(harness, lifecycle.rehome(await self._lost(task), now=now(harness), token=a_token()))

    async def _lost(self, task: Task) -> Task:
        await self._harness.orphan(task.task_id)
        return task


async def test_a_task_that_moves_meanwhile_is_looked_at_again(schema: Schema) -> None:
    task = await submit(schema.harness, delay=seconds(60))
    meddling = Meddling(schema.harness, times=1)

    standing = await meddling.locator.locate(task.task_id, count_up_to=9)

    assert (TaskStatus.QUEUED, True) == (standing.task.status, standing.is_home)
    assert 2 == meddling.reads


async def test_a_task_that_does_not_stand_still_is_given_up(schema: Schema) -> None:
    task = await submit(schema.harness)
    meddling = Meddling(schema.harness, times=LOOKS)

    with pytest.raises(BrokerUnavailable, match="moves faster"):
        await meddling.locator.locate(task.task_id, count_up_to=9)
    assert LOOKS == meddling.reads


async def commands_of(schema: Schema, task: Task) -> Counter[str]:
    """What the server does while it is asked where a task stands."""
    locator = schema.harness.backend.locator
    await locator.locate(task.task_id, count_up_to=100)
    await schema.call("CONFIG", "RESETSTAT")
    assert await locator.locate(task.task_id, count_up_to=100) is not None
    text = str(await schema.call("INFO", "commandstats"))
    lines = [line for line in text.splitlines() if line.startswith("cmdstat_")]
    return Counter(
        {
            line.partition(":")[0].removeprefix("cmdstat_"): int(line.partition("calls=")[2].partition(",")[0])
            for line in lines
        }
    )


@pytest.mark.parametrize("status", TaskStatus)
async def test_nothing_is_written(schema: Schema, status: TaskStatus) -> None:
    task = await bring_to(schema.harness, status)

    assert set(await commands_of(schema, task)) <= READS


async def test_a_full_queue_costs_no_more_than_the_count_that_was_asked_for(schema: Schema) -> None:
    lonely = await commands_of(schema, await submit(schema.harness))
    for priority in (9, 5):
        for _ in range(MANY):
            await create(schema.harness, an_admission(now=now(schema.harness), priority=priority))
    task = await submit(schema.harness)

    crowded = await commands_of(schema, task)

    # 100 entries in bites of 16, and one more look to see that there are more
    assert crowded["xrange"] - lonely["xrange"] <= 2 * (100 // 16 + 1)
    assert {**crowded, "xrange": 0, "evalsha": 0, "time": 0} == {**lonely, "xrange": 0, "evalsha": 0, "time": 0}


async def test_what_is_owned_and_gone_makes_room_for_nothing(schema: Schema) -> None:
    for _ in range(3):
        gone = await submit(schema.harness, priority=9)
        await take(schema.harness)
        await schema.call("XDEL", schema.keys.stream(QUEUE, 9), str(gone.entry_id))
    await submit(schema.harness, priority=8)
    task = await submit(schema.harness, priority=5)

    standing = await schema.harness.backend.locator.locate(task.task_id, count_up_to=9)

    assert standing is not None
    assert 1 == standing.above
