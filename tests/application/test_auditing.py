"""What is refused leaves a trail, and so does whatever changes no task."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from dtq.application.audit import WITHIN
from dtq.application.patience import FAREWELL
from dtq.domain.audit import DONE
from dtq.domain.errors import BrokerUnavailable, CancelRequested, DtqError, InvalidRequest, QueueFull, TaskNotFound
from dtq.domain.status import TaskStatus
from tests.application.link import Loss
from tests.application.world import MAX_QUEUES, World
from tests.factories import OPERATOR

S = TaskStatus
UNKNOWN = "0" * 32

Act = Callable[[World, str], Coroutine[Any, Any, object]]

ACTS: dict[str, Act] = {
    "task.cancel": lambda world, task_id: world.tasks.cancel(task_id, by=OPERATOR),
    "dlq.requeue": lambda world, task_id: world.dead_letters.requeue(task_id, by=OPERATOR),
    "dlq.discard": lambda world, task_id: world.dead_letters.discard(task_id, by=OPERATOR),
}


async def trail(world: World) -> list[tuple[str, str | None, str]]:
    return [(entry.action, entry.task_id, entry.outcome) for entry in await world.trail.recent(limit=10)]


async def ended(world: World) -> str:
    task_id = await world.submit()
    await world.hire()
    assert S.SUCCEEDED == await world.status(task_id)
    return task_id


@pytest.mark.parametrize("action", ACTS)
async def test_an_act_on_no_task_is_audited_as_refused(world: World, action: str) -> None:
    with pytest.raises(DtqError):
        await ACTS[action](world, UNKNOWN)

    assert [(action, UNKNOWN, "TASK_NOT_FOUND")] == await trail(world)
    [entry] = await world.trail.recent(limit=10)
    assert (OPERATOR.name, OPERATOR.request_id, world.clock.now()) == (entry.actor, entry.request_id, entry.ts)


@pytest.mark.parametrize("action", ACTS)
async def test_an_id_that_no_task_can_have_is_cut_and_cleaned(world: World, action: str) -> None:
    with pytest.raises(DtqError):
        await ACTS[action](world, "a\n" + "b" * 100)

    assert [(action, "a " + "b" * 62, "TASK_NOT_FOUND")] == await trail(world)


@pytest.mark.parametrize(
    ("action", "code"),
    [("task.cancel", "TASK_TERMINAL"), ("dlq.requeue", "NOT_DEAD_LETTERED"), ("dlq.discard", "NOT_DEAD_LETTERED")],
)
async def test_an_act_that_the_tasks_state_forbids_is_audited_as_refused(world: World, action: str, code: str) -> None:
    task_id = await ended(world)

    with pytest.raises(DtqError):
        await ACTS[action](world, task_id)

    assert [(action, task_id, code)] == await trail(world)


async def test_what_was_done_says_so(world: World) -> None:
    task_id = await world.submit()

    await world.tasks.cancel(task_id, by=OPERATOR)

    assert [("task.cancel", task_id, DONE)] == await trail(world)


async def test_a_request_to_cancel_is_a_deed_once_and_refused_when_repeated(world: World) -> None:
    await world.hire()
    task_id = await world.submit("stubborn")

    for _ in range(2):
        with pytest.raises(CancelRequested):
            await world.tasks.cancel(task_id, by=OPERATOR)

    assert [
        ("task.cancel", task_id, "CANCEL_REQUESTED"),
        ("task.cancel_requested", task_id, DONE),
    ] == await trail(world)


async def test_a_refusal_is_logged_with_who_asked(world: World) -> None:
    with pytest.raises(DtqError):
        await world.tasks.cancel(UNKNOWN, by=OPERATOR)

    [line] = world.notes.of("audit")
    assert ("task.cancel", OPERATOR.name, OPERATOR.request_id, "TASK_NOT_FOUND") == (
        line["action"],
        line["actor"],
        line["request_id"],
        line["outcome"],
    )


async def test_the_caller_hears_of_the_refusal_although_it_could_not_be_written_down(world: World) -> None:
    world.link.lose("record", Loss.BEFORE)

    with pytest.raises(DtqError, match=UNKNOWN):
        await world.tasks.cancel(UNKNOWN, by=OPERATOR)

    assert [] == await trail(world)
    assert ["task.cancel"] == [line["action"] for line in world.notes.of("audit_lost")]


async def test_what_the_broker_could_not_do_is_no_refusal(world: World) -> None:
    world.link.lose("load", Loss.BEFORE, times=9)

    with pytest.raises(BrokerUnavailable):
        await while_time_passes(world, world.tasks.cancel(UNKNOWN, by=OPERATOR))

    assert [] == await trail(world)


async def while_time_passes(world: World, call: Coroutine[Any, Any, object]) -> None:
    running = asyncio.ensure_future(call)
    await world.advance(5)
    await running


@pytest.mark.parametrize("act", ["pause", "resume", "purge"])
async def test_an_act_on_a_queue_is_logged_with_who_did_it(world: World, act: str) -> None:
    await getattr(world.queues, act)("mail", by=OPERATOR)

    [line] = world.notes.of("audit")
    assert (f"queue.{act}", OPERATOR.name, "mail", DONE) == tuple(
        line[name] for name in ("action", "actor", "queue", "outcome")
    )


async def test_a_purge_of_the_dead_letters_is_logged_with_its_number(world: World) -> None:
    await world.dead_letters.purge(by=OPERATOR)

    [line] = world.notes.of("audit")
    assert ("dlq.purge", 0) == (line["action"], line["count"])


async def test_a_queue_that_nobody_knows_can_be_paused_while_there_is_room(world: World) -> None:
    for number in range(MAX_QUEUES):
        await world.queues.pause(f"queue-{number}", by=OPERATOR)

    with pytest.raises(QueueFull, match="too_many_queues: 5 of 5"):
        await world.queues.pause("one-more", by=OPERATOR)

    await world.queues.pause("queue-0", by=OPERATOR)
    assert MAX_QUEUES == len(await world.queues.names())


@pytest.mark.parametrize("limit", [0, 501])
async def test_a_bad_limit_is_refused(world: World, limit: int) -> None:
    with pytest.raises(InvalidRequest, match="limit"):
        await world.trail.recent(limit=limit)


async def test_a_refusal_waits_no_longer_for_its_entry_than_it_may(world: World) -> None:
    world.link.stall("record")
    refused = asyncio.ensure_future(world.tasks.cancel(UNKNOWN, by=OPERATOR))

    await world.advance((WITHIN + FAREWELL).total_seconds())

    assert isinstance(refused.exception(), TaskNotFound)
