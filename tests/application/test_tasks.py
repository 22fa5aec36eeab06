"""Looking at tasks and canceling them."""

import asyncio
from collections.abc import Callable, Coroutine

import pytest

from dtq.domain.audit import DONE
from dtq.domain.errors import BrokerUnavailable, InvalidRequest, TaskNotFound, TaskTerminal
from dtq.domain.status import TaskStatus
from dtq.ports.events import AuditLog
from tests.application.link import LOSSES, Loss
from tests.application.world import World
from tests.factories import OPERATOR

S = TaskStatus


async def audit_of(world: World) -> list[str]:
    """The acts that were done."""
    log: AuditLog = world.backend.audit
    return [entry.action for entry in await log.recent(limit=10) if entry.outcome == DONE]


@pytest.mark.parametrize("task_id", ["", "nonsense", "\x1b[31m", "0" * 32, "0" * 10_000])
async def test_an_unknown_id_is_not_found(world: World, task_id: str) -> None:
    with pytest.raises(TaskNotFound) as raised:
        await world.tasks.get(task_id)
    with pytest.raises(TaskNotFound):
        await world.tasks.cancel(task_id, by=OPERATOR)

    assert "\x1b" not in str(raised.value)
    assert len(str(raised.value)) < 100


async def test_a_result_that_has_expired_is_said_to_be_expired(world: World) -> None:
    await world.hire()
    task_id = await world.submit()
    await world.settle()
    world.state.results.remove(task_id)

    view = await world.view(task_id)

    assert (None, True) == (view.result, view.result_expired)


async def test_a_waiting_task_has_no_result_and_none_that_expired(world: World) -> None:
    view = await world.view(await world.submit())

    assert (None, False) == (view.result, view.result_expired)
    assert '{"n": 1}' == view.task.payload


async def test_recent_tasks_are_found_by_queue_and_status(world: World) -> None:
    first = await world.submit()
    second = await world.submit(queue="other")
    third = await world.submit(delay_seconds=1)

    async def ids(**query: object) -> list[str]:
        found = await world.tasks.recent(**{"queue": None, "status": None, "limit": 50, **query})  # type: ignore[arg-type]  # each test names its own
        return [task.task_id for task in found.tasks]

    assert [third, second, first] == await ids()
    assert [third] == await ids(limit=1)
    assert [second] == await ids(queue="other")
    assert [third] == await ids(status="pending")
    assert [] == await ids(queue="other", status="pending")


async def test_a_bad_query_names_every_fault(world: World) -> None:
    with pytest.raises(InvalidRequest) as raised:
        await world.tasks.recent(queue="Not A Queue", status="gone", limit=501)

    assert ["queue", "status", "limit"] == [problem.field for problem in raised.value.problems]
    assert "1..500" in raised.value.problems[2].problem
    assert "dead_lettered" in raised.value.problems[1].problem
    assert 0 == world.link.calls["recent"]


async def test_one_list_is_read_at_a_time(world: World) -> None:
    world.link.stall("recent")
    reading = [asyncio.ensure_future(world.tasks.recent(queue=None, status=None, limit=1)) for _ in range(3)]
    await world.settle()
    assert 1 == world.link.calls["recent"]

    world.link.go_on()
    await asyncio.gather(*reading)

    assert 3 == world.link.calls["recent"]


@pytest.mark.parametrize("delay", [0, 5])
async def test_a_waiting_task_is_cancelled_at_once_and_audited(world: World, delay: int) -> None:
    task_id = await world.submit(delay_seconds=delay)

    cancelled = await world.tasks.cancel(task_id, by=OPERATOR)

    assert (S.CANCELLED, S.CANCELLED) == (cancelled.status, await world.status(task_id))
    assert ["task.cancel"] == await audit_of(world)
    assert S.CANCELLED == world.notes.steps(task_id)[-1]


async def test_a_retrying_task_is_cancelled_at_once(world: World) -> None:
    await world.hire()
    task_id = await world.submit("fail", payload='{"error": "retryable"}')
    await world.settle()

    assert S.CANCELLED == (await world.tasks.cancel(task_id, by=OPERATOR)).status


async def test_a_task_that_has_ended_is_not_cancelled(world: World) -> None:
    task_id = await world.submit()
    await world.tasks.cancel(task_id, by=OPERATOR)

    with pytest.raises(TaskTerminal) as raised:
        await world.tasks.cancel(task_id, by=OPERATOR)

    assert S.CANCELLED == raised.value.status
    assert ["task.cancel"] == await audit_of(world)


@pytest.mark.parametrize("loss", LOSSES)
async def test_a_cancel_whose_reply_was_lost_happens_once(world: World, loss: Loss) -> None:
    task_id = await world.submit()
    world.link.lose("commit", loss)
    canceling = asyncio.ensure_future(world.tasks.cancel(task_id, by=OPERATOR))

    await world.advance(1)

    assert S.CANCELLED == (await canceling).status
    assert ["task.cancel"] == await audit_of(world)


async def test_a_cancel_races_with_a_start_and_is_decided_again(world: World) -> None:
    task_id = await world.submit()
    world.link.stall("commit")
    canceling = asyncio.ensure_future(world.tasks.cancel(task_id, by=OPERATOR))
    await world.settle()
    await world.hire()
    await world.settle()
    assert S.SUCCEEDED == await world.status(task_id)

    world.link.go_on()
    await world.settle()

    assert isinstance(canceling.exception(), TaskTerminal)


async def test_a_task_that_vanishes_under_its_cancel_is_not_found(world: World) -> None:
    task_id = await world.submit()
    world.link.stall("commit")
    canceling = asyncio.ensure_future(world.tasks.cancel(task_id, by=OPERATOR))
    await world.settle()
    world.state.records.remove(task_id)

    world.link.go_on()
    await world.settle()

    assert isinstance(canceling.exception(), TaskNotFound)


@pytest.mark.parametrize("call", ["get", "recent", "cancel"])
async def test_an_outage_is_answered_within_four_seconds(world: World, call: str) -> None:
    task_id = await world.submit()
    world.link.is_down = True
    calls: dict[str, Callable[[], Coroutine[None, None, object]]] = {
        "get": lambda: world.tasks.get(task_id),
        "recent": lambda: world.tasks.recent(queue=None, status=None, limit=1),
        "cancel": lambda: world.tasks.cancel(task_id, by=OPERATOR),
    }
    asking = asyncio.ensure_future(calls[call]())

    await world.advance(4)

    assert isinstance(asking.exception(), BrokerUnavailable)
