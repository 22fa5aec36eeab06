"""One repair lets records name their dead letters again, and takes none away."""

from dtq.domain.findings import Kind
from dtq.domain.status import TaskStatus
from dtq.domain.task import Task
from tests.adapters.redis.schema import Schema
from tests.adapters.redis.test_examined_types import doctor_of, told
from tests.contract.steps import bring_to, stored
from tests.factories import OPERATOR


async def unnamed(schema: Schema) -> Task:
    task = await bring_to(schema.harness, TaskStatus.DEAD_LETTERED)
    await schema.harness.unname(task.task_id)
    return task


async def test_records_name_their_dead_letters_again(schema: Schema) -> None:
    tasks = [await unnamed(schema) for _ in range(3)]

    report = await doctor_of(schema).repair(by=OPERATOR)

    assert [(Kind.LETTER_MISSING, 3, 3, 0)] == [(one.kind, one.count, one.repaired, one.left) for one in report.groups]
    for task in tasks:
        assert task.dlq_entry_id == (await stored(schema.harness, task.task_id)).dlq_entry_id
    assert len(tasks) == await schema.call("XLEN", schema.keys.dead_letters)
    assert (True, [], []) == told(await doctor_of(schema).examine())


async def test_one_that_no_letter_names_gets_one_once_a_person_has_said_so(schema: Schema) -> None:
    task = await unnamed(schema)
    await schema.call("XDEL", schema.keys.dead_letters, task.dlq_entry_id or "")
    (group,) = (await doctor_of(schema).repair(by=OPERATOR)).groups
    assert (Kind.LETTER_MISSING, 0, 1) == (group.kind, group.repaired, group.left)

    await schema.call("HSET", schema.keys.task(task.task_id), "dlq_entry_id", "0-1")

    assert (await doctor_of(schema).repair(by=OPERATOR)).is_healthy
    assert 1 == await schema.call("XLEN", schema.keys.dead_letters)
    assert (True, [], []) == told(await doctor_of(schema).examine())


async def test_of_several_letters_the_latest_is_named(schema: Schema) -> None:
    task = await unnamed(schema)
    latest = await schema.call("XADD", schema.keys.dead_letters, "*", "task_id", task.task_id)

    await doctor_of(schema).repair(by=OPERATOR)

    assert latest == (await stored(schema.harness, task.task_id)).dlq_entry_id
    assert [(Kind.LETTER_SURPLUS, 1)] == told(await doctor_of(schema).examine())[1]
