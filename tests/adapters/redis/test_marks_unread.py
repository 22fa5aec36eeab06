"""An entry without a record is not stored again where nobody can say whether its task was cancelled."""

from dtq.domain.findings import Kind
from tests.adapters.redis.schema import Schema
from tests.adapters.redis.test_examined_types import doctor_of, spoil
from tests.contract.steps import submit
from tests.factories import OPERATOR


async def test_an_entry_whose_task_may_have_been_cancelled_is_left(schema: Schema) -> None:
    task = await submit(schema.harness)
    await schema.harness.evict(task.task_id)
    await spoil(schema, schema.keys.cancelled)

    report = await doctor_of(schema).repair(by=OPERATOR)

    assert Kind.ORPHAN_ENTRY not in {one.kind for one in report.groups}
    assert await schema.harness.backend.broker.load(task.task_id) is None
