"""Examiner: queues that have lost their entry in the list of queues, and are known by what is stored of them alone."""

import pytest

from dtq.domain.facts import CountFact, QueueFact
from dtq.domain.findings import Kind
from dtq.domain.status import TaskStatus
from tests.contract.examining import again, found, kinds, the_fact
from tests.contract.harness import Harness
from tests.contract.steps import bring_to, cancel, submit
from tests.factories import QUEUE


@pytest.mark.parametrize("status", [TaskStatus.PENDING, TaskStatus.QUEUED, TaskStatus.RUNNING, TaskStatus.RETRYING])
async def test_a_queue_in_no_list_is_found_by_its_living_tasks(harness: Harness, status: TaskStatus) -> None:
    await bring_to(harness, status)
    await harness.backend.examiner.strike(QUEUE)

    (finding,) = await found(harness)
    assert (Kind.UNREGISTERED, QUEUE, QUEUE) == (finding.kind, finding.subject, finding.queue)

    scheduled = int(status in {TaskStatus.PENDING, TaskStatus.RETRYING})
    await harness.backend.queues.register(QUEUE)
    for one in await found(harness):
        # where the number is kept, and not counted each time, it has to be noted again
        assert isinstance(one.fact, CountFact)
        assert await harness.backend.examiner.recount(one.fact)
    assert [] == await found(harness)
    assert scheduled == (await harness.backend.queues.stats(QUEUE)).retry_scheduled


async def test_a_queue_of_which_only_ended_tasks_are_left_is_in_no_list(harness: Harness) -> None:
    task = await submit(harness)
    fact = await the_fact(harness, QueueFact, name=QUEUE)
    await cancel(harness, task)
    assert await harness.backend.upkeep.retire(QUEUE)

    assert [None] == list(await again(harness, fact))
    assert [] == await kinds(harness)


async def test_an_ended_task_does_not_hide_the_one_that_a_queue_in_no_list_is_found_by(harness: Harness) -> None:
    await bring_to(harness, TaskStatus.DEAD_LETTERED)
    assert await harness.backend.upkeep.retire(QUEUE)
    await bring_to(harness, TaskStatus.PENDING)
    await harness.backend.examiner.strike(QUEUE)

    assert [Kind.UNREGISTERED] == await kinds(harness)
