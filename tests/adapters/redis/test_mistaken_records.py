"""Records that name an entry, or a dead letter, of another task: somebody copied it, or wrote it by hand."""

import pytest

from dtq.domain.findings import Kind
from dtq.domain.status import TaskStatus
from dtq.domain.task import Task
from tests.adapters.redis.schema import Schema
from tests.adapters.redis.test_examination import found
from tests.contract.steps import bring_to

FIELDS = {
    TaskStatus.QUEUED: "entry_id",
    TaskStatus.RUNNING: "entry_id",
    TaskStatus.DEAD_LETTERED: "dlq_entry_id",
}


async def found_of(schema: Schema, task: Task) -> dict[Kind, str]:
    return {one.kind: one.detail for one in await found(schema) if one.subject == task.task_id}


@pytest.mark.parametrize("status", FIELDS)
async def test_what_is_another_tasks_is_no_place_of_this_one(schema: Schema, status: TaskStatus) -> None:
    task, other = await bring_to(schema.harness, status), await bring_to(schema.harness, status)
    record, field = schema.keys.task(task.task_id), FIELDS[status]
    stored = getattr(other, field)
    await schema.call("HSET", record, field, stored)

    told = await found_of(schema, task)

    assert [Kind.UNREADABLE] == [*told]
    assert f"its {field} {stored} is another task's: set that to 0-1" in told[Kind.UNREADABLE]
    assert {} == await found_of(schema, other)

    await schema.call("HSET", record, field, "0-1")

    expected = Kind.LETTER_MISSING if status is TaskStatus.DEAD_LETTERED else Kind.HOMELESS
    assert [expected] == [*await found_of(schema, task)]


async def test_an_entry_of_another_task_is_not_removed_for_want_of_a_payload(schema: Schema) -> None:
    task, other = await bring_to(schema.harness, TaskStatus.QUEUED), await bring_to(schema.harness, TaskStatus.QUEUED)
    stream = schema.keys.stream(other.queue, other.priority)
    hollow = await schema.call("XADD", stream, "*", "task_id", other.task_id)
    await schema.call("HSET", schema.keys.task(task.task_id), "entry_id", hollow)

    assert [Kind.UNREADABLE] == [*await found_of(schema, task)]
