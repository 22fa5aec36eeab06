"""Examiner: records that have lost their payload, which the next step of their tasks needs."""

import pytest

from dtq.domain.facts import TaskFact
from dtq.domain.findings import Kind
from dtq.domain.status import TaskStatus
from tests.contract.examining import again, found, the_fact
from tests.contract.harness import Harness
from tests.contract.steps import bring_to

NEEDING = [TaskStatus.PENDING, TaskStatus.RETRYING, TaskStatus.QUEUED, TaskStatus.RUNNING, TaskStatus.DEAD_LETTERED]


@pytest.mark.parametrize("status", NEEDING)
async def test_a_task_without_its_payload_is_told_of(harness: Harness, status: TaskStatus) -> None:
    task = await bring_to(harness, status)
    assert (await the_fact(harness, TaskFact, task_id=task.task_id)).has_payload

    await harness.strip(task.task_id)

    (finding,) = await found(harness)
    assert (Kind.UNREADABLE, task.task_id, task.queue) == (finding.kind, finding.task_id, finding.queue)
    assert f"{status}, and it has no payload" in finding.detail
    fact = await the_fact(harness, TaskFact, task_id=task.task_id)
    (read,) = await again(harness, fact)
    assert isinstance(read, TaskFact)
    assert (False, False) == (fact.has_payload, read.has_payload)


@pytest.mark.parametrize("status", [TaskStatus.SUCCEEDED, TaskStatus.CANCELLED, TaskStatus.EXPIRED])
async def test_what_has_ended_needs_no_payload(harness: Harness, status: TaskStatus) -> None:
    task = await bring_to(harness, status)
    await harness.strip(task.task_id)

    assert [] == await found(harness)
