"""What operators read when an idempotency key stands for something else than its user may think."""

import pytest

from dtq.domain.errors import IdempotencyInProgress
from dtq.domain.status import TaskStatus
from tests.application.world import World
from tests.factories import OPERATOR, QUEUE

FIELDS = {"task_type": "note", "payload": '{"n": 1}', "idempotency_key": "key-1"}
FAILING = '{"error": "permanent"}'
OTHER = {**FIELDS, "payload": '{"n": 2}', "priority": 9}


async def test_another_body_under_the_key_of_a_living_task_is_noticed(world: World) -> None:
    task_id = (await world.tasks.submit(FIELDS)).task_id

    with pytest.raises(IdempotencyInProgress):
        await world.tasks.submit(OTHER)

    noticed = {"task_id": task_id, "queue": QUEUE, "differs": "payload, priority"}
    assert [noticed] == world.notes.of("idempotency_key_reused")


async def test_another_body_under_the_key_of_an_ended_task_is_noticed_and_answered_with_it(world: World) -> None:
    task_id = (await world.tasks.submit(FIELDS)).task_id
    await world.tasks.cancel(task_id, by=OPERATOR)

    again = await world.tasks.submit(OTHER)

    assert (task_id, True) == (again.task_id, again.duplicate)
    assert [task_id] == [one["task_id"] for one in world.notes.of("idempotency_key_reused")]


async def test_the_same_body_under_the_same_key_is_nothing_to_notice(world: World) -> None:
    task_id = (await world.tasks.submit(FIELDS)).task_id
    await world.tasks.cancel(task_id, by=OPERATOR)

    assert (await world.tasks.submit(FIELDS)).duplicate
    assert [] == world.notes.of("idempotency_key_reused")


async def test_a_requeue_whose_key_went_to_another_task_is_noticed(world: World) -> None:
    dead = await world.submit("fail", payload=FAILING, idempotency_key="key-1")
    await world.hire()
    await world.advance(2)
    assert TaskStatus.DEAD_LETTERED == await world.status(dead)
    world.let_pass(25 * 3600)
    other = (await world.tasks.submit(FIELDS)).task_id

    requeued = await world.dead_letters.requeue(dead, by=OPERATOR)

    assert requeued.is_detached
    assert [{"task_id": dead, "queue": QUEUE}] == world.notes.of("idempotency_detached")
    assert other != dead


async def test_a_requeue_that_has_its_key_is_nothing_to_notice(world: World) -> None:
    dead = await world.submit("fail", payload=FAILING, idempotency_key="key-1")
    await world.hire()
    await world.advance(2)

    requeued = await world.dead_letters.requeue(dead, by=OPERATOR)

    assert not requeued.is_detached
    assert [] == world.notes.of("idempotency_detached")
