"""Tasks that one repair sets right, so that another examination finds nothing, although no worker has come yet."""

import pytest

from dtq.domain.findings import Kind
from dtq.domain.status import TaskStatus
from tests.adapters.redis.schema import Schema
from tests.adapters.redis.test_examined_types import doctor_of, told
from tests.contract.steps import bring_to, run, submit
from tests.factories import OPERATOR, QUEUE

WELL: tuple[bool, list[object], list[object]] = (True, [], [])


@pytest.mark.parametrize("status", [TaskStatus.QUEUED, TaskStatus.RUNNING])
async def test_a_task_whose_entry_was_deleted_waits_for_the_next_worker(schema: Schema, status: TaskStatus) -> None:
    task = await bring_to(schema.harness, status)
    await schema.call("XDEL", schema.keys.stream(QUEUE, task.priority), task.entry_id or "")

    assert (await doctor_of(schema).repair(by=OPERATOR)).is_healthy
    assert told(await doctor_of(schema).examine()) == WELL


async def test_a_running_task_whose_group_was_made_again_waits_for_the_next_worker(schema: Schema) -> None:
    await run(schema.harness)
    await schema.harness.lose_groups(QUEUE)

    report = await doctor_of(schema).repair(by=OPERATOR)

    assert [Kind.ABANDONED] == [one.kind for one in report.groups]
    assert told(await doctor_of(schema).examine()) == WELL


async def test_a_status_that_makes_a_task_scheduled_is_counted_in_the_same_run(schema: Schema) -> None:
    task = await submit(schema.harness)
    await schema.call("HSET", schema.keys.task(task.task_id), "status", "pending")

    report = await doctor_of(schema).repair(by=OPERATOR)

    assert {Kind.SURPLUS_ENTRY, Kind.HOMELESS, Kind.COUNT} == {one.kind for one in report.groups}
    assert report.is_healthy
    assert told(await doctor_of(schema).examine()) == WELL
