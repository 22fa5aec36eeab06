"""Looking at dead letters, requeueing, discarding and purging them."""

import asyncio

import pytest

from dtq.application.dead_letters import DeadLetterService
from dtq.domain.audit import DONE
from dtq.domain.errors import (
    DeadLetterDiscarded,
    InvalidRequest,
    NotDeadLettered,
    NotInDeadLetters,
    OutcomeUnknown,
    TaskNotFound,
)
from dtq.domain.status import TaskStatus
from dtq.domain.task import TaskId
from tests.application import handlers
from tests.application.link import LOSSES, Loss
from tests.application.world import POLICY_WITHOUT_DEAD_LETTERS, World
from tests.factories import OPERATOR

S = TaskStatus
FAILING = '{"error": "permanent"}'


async def a_dead_letter(world: World, **fields: object) -> TaskId:
    staff = await world.hire()
    task_id = await world.submit("fail", payload=FAILING, **fields)
    assert S.DEAD_LETTERED == await world.status(task_id)
    staff.stop()
    await world.advance(1)
    return task_id


async def audit_of(world: World) -> list[str]:
    """The acts that were done."""
    return [entry.action for entry in await world.backend.audit.recent(limit=10) if entry.outcome == DONE]


async def test_dead_letters_are_listed_newest_first_and_counted(world: World) -> None:
    ids = [await a_dead_letter(world) for _ in range(3)]

    letters = await world.dead_letters.recent(limit=2)

    assert [ids[2], ids[1]] == [letter.task.task_id for letter in letters if letter.task is not None]
    assert 3 == await world.dead_letters.count()
    assert FAILING == (await world.dead_letters.get(ids[0])).fields["payload"]


async def test_a_requeued_task_begins_a_new_life(world: World) -> None:
    task_id = await a_dead_letter(world, max_attempts=2)

    requeued = (await world.dead_letters.requeue(task_id, by=OPERATOR)).task

    assert (S.QUEUED, 0) == (requeued.status, requeued.attempt)
    assert 1 == len(requeued.previous_attempts)
    assert 0 == await world.dead_letters.count()
    assert ["dlq.requeue"] == await audit_of(world)
    assert S.QUEUED == world.notes.steps(task_id)[-1]
    await world.hire()
    assert (S.DEAD_LETTERED, 1) == ((await world.task(task_id)).status, (await world.task(task_id)).attempt)


async def test_a_letter_whose_record_is_gone_is_requeued_from_its_fields(world: World) -> None:
    task_id = await a_dead_letter(world)
    world.state.records.remove(task_id)

    await world.dead_letters.requeue(task_id, by=OPERATOR)

    task = await world.task(task_id)
    assert (S.QUEUED, 0, FAILING) == (task.status, task.attempt, task.payload)
    assert 0 == await world.dead_letters.count()


async def test_a_discarded_letter_is_gone_and_its_task_says_so(world: World) -> None:
    task_id = await a_dead_letter(world)

    discarded = await world.dead_letters.discard(task_id, by=OPERATOR)

    assert (S.DEAD_LETTERED, True) == (discarded.status, discarded.discarded)
    assert ["dlq.discard"] == await audit_of(world)
    for act in (world.dead_letters.requeue, world.dead_letters.discard):
        with pytest.raises(DeadLetterDiscarded):
            await act(task_id, by=OPERATOR)
    with pytest.raises(NotInDeadLetters):
        await world.dead_letters.get(task_id)


async def test_a_purge_removes_every_letter_and_keeps_the_tasks(world: World) -> None:
    ids = [await a_dead_letter(world) for _ in range(2)]

    assert 2 == await world.dead_letters.purge(by=OPERATOR)

    assert ["dlq.purge"] == await audit_of(world)
    assert [S.DEAD_LETTERED] * 2 == [await world.status(task_id) for task_id in ids]
    with pytest.raises(NotInDeadLetters):
        await world.dead_letters.requeue(ids[0], by=OPERATOR)


async def test_a_task_that_is_not_dead_is_neither_requeued_nor_discarded(world: World) -> None:
    task_id = await world.submit()

    for act in (world.dead_letters.requeue, world.dead_letters.discard):
        with pytest.raises(NotDeadLettered) as raised:
            await act(task_id, by=OPERATOR)
        assert S.QUEUED == raised.value.status
    with pytest.raises(NotInDeadLetters):
        await world.dead_letters.get(task_id)


async def test_an_unknown_id_is_not_found(world: World) -> None:
    for task_id in ("nonsense", "0" * 32):
        for act in (world.dead_letters.requeue, world.dead_letters.discard):
            with pytest.raises(TaskNotFound):
                await act(task_id, by=OPERATOR)
    with pytest.raises(TaskNotFound):
        await world.dead_letters.get("nonsense")


async def test_a_purge_whose_answer_was_lost_is_not_repeated(world: World) -> None:
    await a_dead_letter(world)
    world.link.lose("purge", Loss.AFTER)

    purging = asyncio.ensure_future(world.dead_letters.purge(by=OPERATOR))
    await world.advance(5)

    # what has come in since is nobody's to throw away who has not seen it
    assert (0, 1) == (await world.dead_letters.count(), world.link.calls["purge"])
    assert isinstance(purging.exception(), OutcomeUnknown)


async def test_a_malformed_letter_can_only_be_purged(world: World) -> None:
    task_id = TaskId("f" * 32)
    world.state.add_letter({"task_id": task_id, "last_error": "malformed_entry"})

    with pytest.raises(InvalidRequest, match="can only be purged"):
        await world.dead_letters.requeue(task_id, by=OPERATOR)

    assert 1 == await world.dead_letters.purge(by=OPERATOR)


@pytest.mark.parametrize("loss", LOSSES)
async def test_a_requeue_whose_reply_was_lost_happens_once(world: World, loss: Loss) -> None:
    task_id = await a_dead_letter(world)
    world.link.lose("commit", loss)
    requeueing = asyncio.ensure_future(world.dead_letters.requeue(task_id, by=OPERATOR))

    await world.advance(1)

    assert S.QUEUED == (await requeueing).task.status
    assert ["dlq.requeue"] == await audit_of(world)


async def test_of_two_requeues_one_succeeds(world: World) -> None:
    task_id = await a_dead_letter(world)

    results = await asyncio.gather(
        *[world.dead_letters.requeue(task_id, by=OPERATOR) for _ in range(2)], return_exceptions=True
    )

    assert 1 == len([one for one in results if isinstance(one, NotDeadLettered)])
    assert ["dlq.requeue"] == await audit_of(world)


async def test_of_a_requeue_and_a_discard_one_succeeds(world: World) -> None:
    task_id = await a_dead_letter(world)

    results = await asyncio.gather(
        world.dead_letters.discard(task_id, by=OPERATOR),
        world.dead_letters.requeue(task_id, by=OPERATOR),
        return_exceptions=True,
    )

    assert isinstance(results[1], DeadLetterDiscarded)
    assert ["dlq.discard"] == await audit_of(world)


async def test_a_requeue_is_bound_to_the_letter_that_was_seen(world: World) -> None:
    task_id = await a_dead_letter(world)
    world.link.stall("commit")
    requeueing = asyncio.ensure_future(world.dead_letters.requeue(task_id, by=OPERATOR))
    await world.settle()
    rival = DeadLetterService(
        world.backend.dead_letters,
        store=world.backend.broker,
        clock=world.clock,
        ids=world.ids,
        trail=world.trail,
        observers=[],
    )
    await rival.requeue(task_id, by=OPERATOR)
    await world.hire()
    await world.settle()
    assert S.DEAD_LETTERED == await world.status(task_id)

    world.link.go_on()
    await world.settle()

    assert isinstance(requeueing.exception(), NotDeadLettered)
    assert 2 == len(handlers.runs)


async def test_without_dead_letters_a_task_fails(world: World) -> None:
    await world.hire(failure_policy=POLICY_WITHOUT_DEAD_LETTERS)

    task_id = await world.submit("fail", payload=FAILING)

    assert S.FAILED == await world.status(task_id)
    assert 0 == await world.dead_letters.count()


@pytest.mark.parametrize("limit", [0, 501])
async def test_a_bad_limit_is_refused(world: World, limit: int) -> None:
    with pytest.raises(InvalidRequest, match="limit"):
        await world.dead_letters.recent(limit=limit)
