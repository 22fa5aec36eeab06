"""Locator: one test for each sentence of its docstrings."""

from collections.abc import Sequence

import pytest

from dtq.application.reaping import SURELY_HANDED_BACK
from dtq.domain import lifecycle
from dtq.domain.standing import Standing
from dtq.domain.status import HOMES, Place, TaskStatus
from dtq.domain.task import QueueName, Task
from tests.contract.harness import Harness
from tests.contract.steps import (
    PEER,
    bare,
    bring_to,
    claim,
    make,
    now,
    reap_one,
    run,
    seconds,
    stored,
    submit,
    take,
    take_one,
)
from tests.factories import OPERATOR, QUEUE, WORKER, a_task_id, a_token, an_audit_entry, an_event

MANY = 1000


async def locate(harness: Harness, task: Task, *, count_up_to: int = MANY) -> Standing:
    standing = await harness.backend.locator.locate(task.task_id, count_up_to=count_up_to)
    assert standing is not None
    return standing


async def pause(harness: Harness, queue: QueueName = QUEUE) -> None:
    await harness.backend.queues.pause(queue, audit=an_audit_entry(), event=an_event())


def counts(standing: Standing) -> Sequence[object]:
    return [standing.above, standing.before, standing.before_is_whole]


@pytest.mark.parametrize("status", TaskStatus)
async def test_a_task_is_found_with_its_record_and_without_its_payload(harness: Harness, status: TaskStatus) -> None:
    task = await bring_to(harness, status)

    standing = await locate(harness, task)

    assert bare(await stored(harness, task.task_id)) == standing.task
    assert (True, False, False) == (standing.is_home, standing.on_loan, standing.paused)
    assert ("", (), [0, 0, True]) == (standing.unreadable, standing.spoiled, counts(standing))


async def test_an_unknown_task_is_nowhere(harness: Harness) -> None:
    assert await harness.backend.locator.locate(a_task_id(), count_up_to=MANY) is None


async def test_a_task_whose_record_is_gone_is_nowhere(harness: Harness) -> None:
    task = await submit(harness)
    await harness.evict(task.task_id)

    assert await harness.backend.locator.locate(task.task_id, count_up_to=MANY) is None


@pytest.mark.parametrize("status", TaskStatus)
async def test_the_pause_of_its_queue_is_told(harness: Harness, status: TaskStatus) -> None:
    task = await bring_to(harness, status)
    await pause(harness, QueueName("other"))
    assert not (await locate(harness, task)).paused

    await pause(harness)

    assert (await locate(harness, task)).paused


@pytest.mark.parametrize("status", [one for one in TaskStatus if HOMES[one] is not Place.NOWHERE])
async def test_a_task_that_its_place_has_lost_is_not_at_home(harness: Harness, status: TaskStatus) -> None:
    task = await bring_to(harness, status)
    await harness.orphan(task.task_id)

    standing = await locate(harness, task)

    assert (False, None) == (standing.is_home, standing.holding)


async def test_a_dead_letter_that_was_discarded_is_at_home(harness: Harness) -> None:
    task = await bring_to(harness, TaskStatus.DEAD_LETTERED)
    await make(harness, lifecycle.discard(task, now=now(harness), token=a_token(), by=OPERATOR))

    assert (await locate(harness, task)).is_home


async def test_a_due_task_on_loan_is_at_home(harness: Harness) -> None:
    task = await submit(harness, delay=seconds(5))
    await claim(harness, task)

    standing = await locate(harness, task)

    assert (True, True) == (standing.is_home, standing.on_loan)


async def test_the_owner_of_an_entry_is_told_with_how_long_it_was_silent(harness: Harness) -> None:
    read = await submit(harness)
    await take_one(harness, read)
    running = await run(harness, worker=PEER, priority=7)
    await harness.advance(seconds(7))

    for task, owner in ((read, WORKER), (running, PEER)):
        holding = (await locate(harness, task)).holding
        assert holding is not None
        assert owner == holding.owner
        assert seconds(7) <= holding.idle < seconds(20)


async def test_an_entry_that_was_taken_over_has_its_new_owner(harness: Harness) -> None:
    task = await run(harness)
    await reap_one(harness, task)

    holding = (await locate(harness, task)).holding

    assert holding is not None
    assert PEER == holding.owner
    assert holding.idle < seconds(20)


async def test_an_entry_that_was_handed_back_seems_long_idle(harness: Harness) -> None:
    task = await submit(harness)
    delivery = await take_one(harness, task)
    await harness.backend.broker.release([delivery.receipt], worker=WORKER)

    holding = (await locate(harness, task)).holding

    assert holding is not None
    assert SURELY_HANDED_BACK < holding.idle


async def test_an_entry_whose_group_is_lost_has_no_owner(harness: Harness) -> None:
    task, other = await run(harness), await run(harness, priority=9)
    await harness.lose_groups(QUEUE)

    standing = await locate(harness, task)

    assert (True, None) == (standing.is_home, standing.holding)
    assert [1, 0, True] == counts(standing)
    assert (await locate(harness, other)).holding is None


async def test_what_is_before_an_entry_is_counted(harness: Harness) -> None:
    await submit(harness, priority=9, queue=QueueName("other"))
    for priority in (9, 8, 9, 5, 5, 4):
        await submit(harness, priority=priority)
    task = await submit(harness)
    await submit(harness)
    await submit(harness, priority=6)

    assert [4, 2, True] == counts(await locate(harness, task))


async def test_what_was_read_is_not_before_an_entry(harness: Harness) -> None:
    for priority in (9, 5):
        await submit(harness, priority=priority)
    await take(harness)
    await submit(harness, priority=9)
    await submit(harness)
    task = await submit(harness)

    assert [1, 1, True] == counts(await locate(harness, task))


async def test_what_is_before_the_owner_s_entry_is_not_counted(harness: Harness) -> None:
    task = await run(harness)
    await submit(harness, priority=9)

    assert [0, 0, True] == counts(await locate(harness, task))


async def test_of_its_own_priority_no_more_is_counted_than_asked_for(harness: Harness) -> None:
    for _ in range(3):
        await submit(harness)
    task = await submit(harness)

    assert [0, 2, False] == counts(await locate(harness, task, count_up_to=2))
    assert [0, 3, True] == counts(await locate(harness, task, count_up_to=3))
    assert [0, 3, True] == counts(await locate(harness, task, count_up_to=4))


async def test_many_before_it_are_counted(harness: Harness) -> None:
    for _ in range(230):
        await submit(harness)
    task = await submit(harness)

    assert [0, 230, True] == counts(await locate(harness, task))
    assert [0, 150, False] == counts(await locate(harness, task, count_up_to=150))


async def test_a_priority_that_cannot_be_read_is_named_and_not_counted(harness: Harness) -> None:
    await submit(harness, priority=8)
    task = await submit(harness)
    await harness.spoil(QUEUE, priority=9)
    await harness.spoil(QUEUE, priority=2)

    standing = await locate(harness, task)

    assert (9,) == standing.spoiled
    assert (True, [1, 0, True]) == (standing.is_home, counts(standing))


async def test_whose_own_priority_cannot_be_read_is_taken_to_be_at_home(harness: Harness) -> None:
    task = await submit(harness)
    await harness.spoil(QUEUE, priority=task.priority)

    standing = await locate(harness, task)

    assert ((task.priority,), True, None) == (standing.spoiled, standing.is_home, standing.holding)


@pytest.mark.parametrize("status", [TaskStatus.QUEUED, TaskStatus.SUCCEEDED])
async def test_a_record_that_cannot_be_read_is_answered_with_a_clause_that_says_so(
    harness: Harness, status: TaskStatus
) -> None:
    task = await bring_to(harness, status)
    await harness.garble(task.task_id)

    standing = await locate(harness, task)

    assert standing.task is None
    assert "record" in standing.unreadable


@pytest.mark.parametrize("status", TaskStatus)
async def test_a_look_disturbs_nothing(harness: Harness, status: TaskStatus) -> None:
    task = await bring_to(harness, status)
    census, before = await harness.census(), await locate(harness, task)

    await harness.advance(seconds(3))
    after = await locate(harness, task)

    assert census == await harness.census()
    assert before.task == after.task
    if before.holding is not None and after.holding is not None:
        assert before.holding.idle + seconds(3) <= after.holding.idle
