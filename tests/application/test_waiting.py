"""Waiting for tasks to end, on a fan-out whose line a test may cut."""

import asyncio
from datetime import timedelta

import pytest

from dtq.adapters.memory import State
from dtq.adapters.memory.channels import Channels
from dtq.adapters.memory.clock import settle
from dtq.application import waiting
from dtq.application.audit import AuditTrail
from dtq.application.fan_out_feed import GATHER
from dtq.application.fan_out_filter import EVERYTHING
from dtq.application.tasks import TaskService, TaskView
from dtq.application.waiting import LOOK, LOOK_DEAF, TooManyWaiters, Waiting
from dtq.domain.admission import AdmissionRules, BrokerLimits
from dtq.domain.errors import InvalidRequest, TaskNotFound
from dtq.domain.events import Event
from dtq.domain.status import TaskStatus
from tests.application.fan_out_world import FanOutWorld
from tests.application.link import Link, over
from tests.application.stage import CountedIds
from tests.factories import OPERATOR

MINUTE = timedelta(seconds=60)
S = TaskStatus


class Stage(FanOutWorld):
    """A fan-out, a service of tasks beside it, and whoever waits."""

    def __init__(self, *, max_clients: int = 1000) -> None:
        super().__init__(max_clients=max_clients)
        self.state: State = self.backend.broker._state  # type: ignore[attr-defined]  # noqa: SLF001 - it is ours
        self.link = Link()
        backend = over(self.link, self.backend)
        self.tasks = TaskService(
            backend.broker,
            clock=self.clock,
            ids=CountedIds(),
            signals=backend.signals,
            trail=AuditTrail(backend.audit, clock=self.clock, observers=[]),
            observers=[],
            rules=AdmissionRules(task_types=("note",)),
            limits=BrokerLimits(),
        )
        self.waiting = Waiting(self.tasks, fan_out=self.fan_out, clock=self.clock)

    async def submit(self) -> str:
        return (await self.tasks.submit({"task_type": "note", "payload": "{}"})).task_id

    async def wait(self, task_id: str, *, within: timedelta = MINUTE) -> "asyncio.Task[TaskView]":
        """Begin to wait, and let the subscription come about."""
        call = asyncio.ensure_future(self.waiting.ended(task_id, within=within))
        await settle(turns=100)
        return call

    async def end(self, task_id: str) -> None:
        """End a task, and let the event of that come through."""
        await self.tasks.cancel(task_id, by=OPERATOR)
        await settle(turns=100)
        await self.pass_time(2 * GATHER)


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_the_answer_comes_with_the_event(stage: Stage) -> None:
    task_id = await stage.submit()
    call = await stage.wait(task_id)
    assert not call.done()

    await stage.end(task_id)

    assert S.CANCELLED is call.result().task.status


async def test_an_ended_task_is_answered_at_once(stage: Stage) -> None:
    task_id = await stage.submit()
    await stage.tasks.cancel(task_id, by=OPERATOR)

    call = await stage.wait(task_id)

    assert S.CANCELLED is call.result().task.status


async def test_the_time_over_the_task_is_answered_as_it_is(stage: Stage) -> None:
    call = await stage.wait(await stage.submit(), within=timedelta(seconds=3))

    await stage.pass_time(timedelta(seconds=2.9))
    assert not call.done()
    await stage.pass_time(timedelta(seconds=0.2))

    assert S.QUEUED is call.result().task.status


async def test_without_a_wait_nobody_listens(stage: Stage) -> None:
    await stage.wait(await stage.submit(), within=timedelta())

    assert 0 == stage.line.subscriptions


async def test_many_wait_on_one_subscription_and_each_is_woken_for_its_own_task(stage: Stage) -> None:
    ids = [await stage.submit() for _ in range(200)]
    calls = [await stage.wait(task_id) for task_id in ids]
    looks = stage.link.calls["load"]

    await stage.end(ids[7])

    assert [7] == [number for number, call in enumerate(calls) if call.done()]
    assert (1, 1) == (stage.line.subscriptions, stage.fan_out.clients)
    # the cancel's own, and the one of who waited
    assert looks + 2 == stage.link.calls["load"]
    for task_id in ids:
        if task_id != ids[7]:
            await stage.end(task_id)
    assert all(call.done() for call in calls)


async def test_several_wait_for_one_task(stage: Stage) -> None:
    task_id = await stage.submit()
    calls = [await stage.wait(task_id) for _ in range(3)]

    await stage.end(task_id)

    assert [S.CANCELLED] * 3 == [call.result().task.status for call in calls]


async def test_when_nobody_waits_nobody_listens(stage: Stage) -> None:
    task_id = await stage.submit()
    await stage.wait(task_id)

    await stage.end(task_id)

    assert 0 == stage.fan_out.clients


async def test_a_caller_that_goes_leaves_nothing_behind(stage: Stage) -> None:
    call = await stage.wait(await stage.submit())

    call.cancel()
    await settle(turns=100)

    assert 0 == stage.fan_out.clients


async def test_no_task_is_remembered_that_nobody_waits_for(stage: Stage) -> None:
    remembered = vars(stage.waiting)["_waiters"]
    ids = [await stage.submit() for _ in range(3)]
    calls = [await stage.wait(task_id) for task_id in ids]
    assert set(ids) == set(remembered)

    await stage.end(ids[0])
    calls[1].cancel()
    await settle(turns=100)
    assert {ids[2]} == set(remembered)
    await stage.pass_time(MINUTE)

    assert {} == remembered


async def test_while_no_events_come_a_look_a_second_finds_out(stage: Stage) -> None:
    stage.line.is_down = True
    task_id = await stage.submit()
    call = await stage.wait(task_id)

    await stage.tasks.cancel(task_id, by=OPERATOR)
    await stage.pass_time(LOOK_DEAF)

    assert call.done()


async def test_what_happened_while_the_line_was_down_is_found_when_it_is_up(stage: Stage) -> None:
    task_id = await stage.submit()
    call = await stage.wait(task_id)
    stage.line.is_down = True
    stage.line.cut()
    await settle(turns=100)

    await stage.tasks.cancel(task_id, by=OPERATOR)
    stage.line.is_down = False
    await stage.pass_time(timedelta(milliseconds=600))

    assert call.done()


async def test_an_event_that_is_lost_costs_ten_seconds_at_most(stage: Stage) -> None:
    task_id = await stage.submit()
    call = await stage.wait(task_id)
    await stage.pass_time(timedelta(seconds=0.1))

    stage.state.events = Channels[Event]()
    await stage.tasks.cancel(task_id, by=OPERATOR)
    await stage.pass_time(LOOK - timedelta(seconds=0.2))
    assert not call.done()
    await stage.pass_time(timedelta(seconds=0.2))

    assert S.CANCELLED is call.result().task.status


async def assert_found_in_a_second(stage: Stage) -> None:
    """Have another client take the only place, and see that who waits finds out all the same."""
    task_id = await stage.submit()
    with stage.fan_out.listen(EVERYTHING, encode=str):
        call = await stage.wait(task_id)
        await stage.tasks.cancel(task_id, by=OPERATOR)
        await stage.pass_time(LOOK_DEAF)

    assert call.done()


async def test_where_no_more_clients_may_listen_looks_find_out() -> None:
    await assert_found_in_a_second(Stage(max_clients=1))


async def test_after_nobody_waited_the_next_one_hears_again(stage: Stage) -> None:
    await stage.end(await first_waited_for(stage))
    task_id = await stage.submit()
    call = await stage.wait(task_id)

    await stage.end(task_id)

    assert (S.CANCELLED, 1) == (call.result().task.status, stage.line.subscriptions)


async def first_waited_for(stage: Stage) -> str:
    task_id = await stage.submit()
    await stage.wait(task_id)
    return task_id


async def test_who_heard_once_and_may_not_listen_again_looks_each_second() -> None:
    stage = Stage(max_clients=1)
    await stage.end(await first_waited_for(stage))

    await assert_found_in_a_second(stage)


async def test_the_end_of_the_process_ends_every_wait(stage: Stage) -> None:
    calls = [await stage.wait(await stage.submit()) for _ in range(3)]

    stage.fan_out.close()
    await settle(turns=100)
    late = await stage.wait(await stage.submit())

    assert [S.QUEUED] * 4 == [call.result().task.status for call in [*calls, late]]


async def test_an_unknown_task_is_not_waited_for(stage: Stage) -> None:
    with pytest.raises(TaskNotFound):
        await stage.waiting.ended("0" * 32, within=MINUTE)


@pytest.mark.parametrize("seconds", [-0.001, 60.001])
async def test_a_wait_out_of_bounds_is_refused(stage: Stage, seconds: float) -> None:
    with pytest.raises(InvalidRequest, match="wait"):
        await stage.waiting.ended("0" * 32, within=timedelta(seconds=seconds))


async def test_no_more_than_a_bound_may_wait(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "MAX_WAITERS", 1)
    task_id = await stage.submit()
    call = await stage.wait(task_id)

    with pytest.raises(TooManyWaiters):
        await stage.waiting.ended(task_id, within=MINUTE)

    assert not call.done()
