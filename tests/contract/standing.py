"""Where a task stands: its status, the one place that holds it, and its idempotency record."""

from dtq.domain.idempotency import state_of
from dtq.domain.status import Place, TaskStatus
from dtq.domain.task import Task, TaskId
from tests.contract.harness import Harness
from tests.contract.steps import key_record, stored

KEY = "the-key"
"""The idempotency key of a task whose standing is asked for."""


async def assert_stands(harness: Harness, task_id: TaskId, status: TaskStatus, place: Place) -> Task:
    """The task has this status, this place holds it and no other, and its record says the same."""
    task = await stored(harness, task_id)
    assert status is task.status
    places = {held for held, task_ids in (await harness.census()).items() if task_id in task_ids}
    assert (set() if place is Place.NOWHERE else {place}) == places
    record = None if task.idempotency_key is None else await key_record(harness, KEY, queue=task.queue)
    if record is not None:
        assert (task_id, state_of(status)) == (record.task_id, record.state)
    return task
