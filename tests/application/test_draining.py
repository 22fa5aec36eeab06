"""How a worker ends: nothing that it started is lost, and nothing that it did not is kept."""

from datetime import timedelta

import pytest

from dtq.application.settings import ExitCode
from dtq.domain.errors import CancelRequested
from dtq.domain.events import EventType
from dtq.domain.status import TaskStatus
from dtq.domain.workers import WorkerStatus
from tests.application import handlers
from tests.application.link import Loss, UnknownFault
from tests.application.world import EXPIRING, WatchedBeat, World
from tests.factories import OPERATOR

S = TaskStatus


async def test_an_idle_worker_ends_at_once(world: World) -> None:
    staff = await world.hire()

    staff.stop()
    await world.advance(1)

    assert ExitCode.DRAINED == staff.life.result()


async def test_what_runs_is_finished_and_nothing_new_is_started(world: World) -> None:
    staff = await world.hire()
    running = await world.submit("hold")
    waiting = await world.submit("hold")

    staff.stop()
    await world.advance(10)
    assert not staff.life.done()
    handlers.let_all_go()
    await world.settle()

    assert ExitCode.DRAINED == staff.life.result()
    assert [S.SUCCEEDED, S.QUEUED] == [await world.status(running), await world.status(waiting)]
    assert 0 == await world.pending()


async def test_a_draining_worker_says_so_and_keeps_its_leases(world: World) -> None:
    await world.age_server()
    staff = await world.hire(drain_timeout=timedelta(seconds=300))
    task_id = await world.submit("hold", timeout_ms=600_000)
    await world.hire()

    staff.stop()
    await world.advance(100)

    heartbeat = await world.backend.workers.get(staff.settings.worker_id)
    assert heartbeat is not None
    assert (WorkerStatus.DRAINING, 1) == (heartbeat.status, heartbeat.active_tasks)
    assert 1 == (await world.task(task_id)).attempt


async def test_a_cancellation_is_heard_while_draining(world: World) -> None:
    staff = await world.hire(drain_timeout=timedelta(seconds=300))
    task_id = await world.submit("hold")
    staff.stop()
    await world.advance(1)

    with pytest.raises(CancelRequested):
        await world.tasks.cancel(task_id, by=OPERATOR)
    await world.settle()

    assert S.CANCELLED == await world.status(task_id)
    assert ExitCode.DRAINED == staff.life.result()


async def test_after_the_limit_an_async_handler_is_stopped_and_its_entry_handed_back(world: World) -> None:
    await world.age_server()
    staff = await world.hire(drain_timeout=timedelta(seconds=10))
    task_id = await world.submit("hold")
    peer = await world.hire()
    staff.stop()
    await world.advance(9.9)
    assert S.RUNNING == await world.status(task_id)

    await world.advance(0.2)
    task = await world.task(task_id)

    assert ExitCode.WORK_LEFT == staff.life.result()
    assert (peer.settings.worker_id, 2) == (task.worker_id, task.attempt)
    assert [S.RUNNING] == staff.notes.steps(task_id)


async def test_after_the_limit_a_thread_is_left_behind_and_its_entry_handed_back(world: World) -> None:
    staff = await world.hire(drain_timeout=timedelta(seconds=10))
    task_id = await world.submit("thread")
    await world.until(lambda: bool(handlers.runs))

    staff.stop()
    await world.advance(11)

    assert ExitCode.WORK_LEFT == staff.life.result()
    assert S.RUNNING == await world.status(task_id)
    peer = await world.hire()
    assert peer.settings.worker_id == (await world.task(task_id)).worker_id


async def test_a_cancelled_thread_that_goes_on_past_the_limit_is_left_to_the_next_worker_to_end(world: World) -> None:
    staff = await world.hire(drain_timeout=timedelta(seconds=10))
    task_id = await world.submit("thread")
    await world.until(lambda: bool(handlers.runs))
    with pytest.raises(CancelRequested):
        await world.tasks.cancel(task_id, by=OPERATOR)

    staff.stop()
    await world.advance(11)
    assert ExitCode.WORK_LEFT == staff.life.result()
    assert S.RUNNING == await world.status(task_id)
    await world.hire()

    assert S.CANCELLED == await world.status(task_id)
    assert 1 == len(handlers.runs)


async def test_the_beat_has_ended_before_anything_is_handed_back(world: World) -> None:
    order: list[str] = []
    staff = await world.hire(drain_timeout=timedelta(seconds=1), beat=WatchedBeat(order))
    await world.submit("hold")
    staff.link.watch("release", lambda: order.append("release"))

    staff.stop()
    await world.advance(3)

    assert ["start", "stop", "release"] == order[:3]


async def test_a_handler_that_swallows_the_drain_is_given_up_too(world: World) -> None:
    staff = await world.hire(drain_timeout=timedelta(seconds=10))
    task_id = await world.submit("stubborn", timeout_ms=100_000)

    staff.stop()
    await world.advance(12)

    assert ExitCode.WORK_LEFT == staff.life.result()
    assert S.RUNNING == await world.status(task_id)


async def test_entries_that_were_read_and_not_started_go_to_a_peer_without_an_attempt(world: World) -> None:
    staff = await world.hire()
    staff.link.stall("fetch")
    task_id = await world.submit(**EXPIRING)
    peer = await world.hire()
    assert 1 == await world.pending()

    staff.stop()
    staff.link.go_on()
    await world.advance(1)

    task = await world.task(task_id)
    assert (S.SUCCEEDED, 1, peer.settings.worker_id) == (task.status, task.attempt, task.worker_id)
    assert ExitCode.DRAINED == staff.life.result()


async def test_a_start_that_is_under_way_is_waited_for_and_run(world: World) -> None:
    staff = await world.hire()
    staff.link.stall("commit")
    task_id = await world.submit(**EXPIRING)

    staff.stop()
    await world.advance(3)
    assert not staff.life.done()
    staff.link.go_on()
    await world.advance(1)

    assert (S.SUCCEEDED, 1) == ((await world.task(task_id)).status, (await world.task(task_id)).attempt)
    assert ExitCode.DRAINED == staff.life.result()


async def test_a_second_request_ends_the_worker_now(world: World) -> None:
    staff = await world.hire()
    task_id = await world.submit("hold")
    staff.stop()
    await world.settle()
    assert not staff.life.done()

    staff.stop()
    await world.settle()

    assert ExitCode.WORK_LEFT == staff.life.result()
    assert S.RUNNING == await world.status(task_id)


async def test_a_worker_says_hello_and_goodbye(world: World) -> None:
    async with world.backend.events.subscribe() as events:
        staff = await world.hire()
        staff.stop()
        await world.advance(1)
        heard = [await anext(events), await anext(events)]

    assert [EventType.WORKER_STARTED, EventType.WORKER_STOPPED] == [event.type for event in heard]
    assert heard == staff.notes.events
    assert [] == list(await world.backend.workers.known())


async def test_a_worker_hands_the_lead_over_when_it_ends(world: World) -> None:
    first = await world.hire()
    await world.hire()
    await world.advance(4)

    first.stop()
    await world.advance(1)
    task_id = await world.submit(delay_seconds=1)
    await world.advance(5)

    assert S.SUCCEEDED == await world.status(task_id)


async def test_a_drain_without_a_broker_ends_at_its_limit(world: World) -> None:
    staff = await world.hire(drain_timeout=timedelta(seconds=10))
    await world.submit("hold")
    staff.link.is_down = True
    handlers.let_all_go()

    staff.stop()
    await world.advance(20)

    assert ExitCode.WORK_LEFT == staff.life.result()
    assert {"poll", "lead", "hand_back", "presence"} == {note["part"] for note in staff.notes.of("drain_incomplete")}


async def test_a_worker_that_may_not_hand_back_says_that_work_was_left(world: World) -> None:
    staff = await world.hire()
    await world.settle()
    staff.link.lose("owned", Loss.BEFORE, times=2)

    staff.stop()
    await world.advance(1)

    assert ExitCode.WORK_LEFT == staff.life.result()


async def test_a_fault_that_nobody_knows_is_not_taken_for_an_outage_at_the_end_of_a_drain(world: World) -> None:
    staff = await world.hire()
    await world.settle()
    staff.link.lose("owned", Loss.GARBLED)

    staff.stop()
    await world.advance(1)

    assert isinstance(staff.life.exception(), UnknownFault)


async def test_a_worker_that_never_reached_its_broker_ends_when_it_is_asked_to(world: World) -> None:
    staff = await world.hire_unconnected()
    await world.advance(3)

    staff.stop()
    await world.settle()

    assert ExitCode.DRAINED == staff.life.result()


@pytest.mark.parametrize("method", ["fetch", "wait", "extend", "owned", "acquire", "resign", "announce", "retire"])
async def test_a_drain_with_a_silent_broker_ends_two_seconds_after_its_limit(world: World, method: str) -> None:
    await world.age_server()
    staff = await world.hire(drain_timeout=timedelta(seconds=5), concurrency=2)
    await world.submit("hold", timeout_ms=3_600_000)
    staff.link.stall(method)
    await world.advance(4)

    staff.worker.request_stop()
    await world.advance(5 + 2 + 0.5)

    assert staff.life.done()
    assert ExitCode.WORK_LEFT == staff.life.result()


async def test_an_idle_worker_with_a_silent_broker_ends_two_seconds_after_its_limit(world: World) -> None:
    staff = await world.hire(drain_timeout=timedelta(seconds=5))
    staff.link.stall("fetch", "wait", "extend", "owned", "acquire", "resign", "announce", "retire", "take_due")
    await world.advance(4)

    staff.worker.request_stop()
    await world.advance(5 + 2 + 0.5)

    assert staff.life.done()
    assert ExitCode.WORK_LEFT == staff.life.result()
    assert {"TimeoutError"} == {note["error"] for note in staff.notes.of("drain_incomplete")}
