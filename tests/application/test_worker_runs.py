"""A worker takes work as soon as there is any, in strict order, and never more than it has slots for."""

import json

from dtq.domain.status import TaskStatus
from tests.application import handlers
from tests.application.world import World, starts_of
from tests.factories import QUEUE

S = TaskStatus


async def test_a_task_of_any_priority_is_run_at_once_by_an_idle_worker(world: World) -> None:
    await world.hire()

    for priority in (0, 9, 5):
        task_id = await world.submit(priority=priority)

        assert S.SUCCEEDED == await world.status(task_id)
    assert 0 == world.clock.monotonic()


async def test_the_task_that_wakes_a_worker_is_not_handed_back_first(world: World) -> None:
    staff = await world.hire()

    await world.submit()

    assert (1, 0) == (len(handlers.runs), staff.link.calls["release"])


async def test_the_result_of_a_task_is_kept(world: World) -> None:
    await world.hire()

    task_id = await world.submit(payload='{"a": [1, null]}')

    view = await world.view(task_id)
    assert {"a": [1, None]} == json.loads(view.result or "")
    assert not view.result_expired
    assert 1 == view.task.attempt


async def test_bands_are_drained_in_strict_order(world: World) -> None:
    ids = [await world.submit(priority=priority) for priority in (0, 9, 3, 9, 0, 5)]

    await world.hire()

    assert [ids[index] for index in (1, 3, 5, 2, 0, 4)] == [context.task_id for context in handlers.runs]


async def test_a_batch_for_an_idle_worker_is_run_in_strict_order(world: World) -> None:
    await world.hire()
    fields = {"task_type": "note", "payload": "{}"}

    submitted = await world.tasks.submit_many([{**fields, "priority": priority} for priority in range(10)])
    await world.settle()

    expected = [one.task_id for one in reversed(submitted) if not isinstance(one, Exception)]
    assert expected == [context.task_id for context in handlers.runs]


async def test_what_was_handed_back_does_not_wait_behind_fresh_work_of_lower_bands(world: World) -> None:
    await world.hire()
    fields = {"task_type": "note", "payload": "{}"}

    submitted = await world.tasks.submit_many([{**fields, "priority": priority} for priority in (0, 0, 5, 5, 9, 9)])
    await world.settle()

    ids = [one.task_id for one in submitted if not isinstance(one, Exception)]
    bands = {9: set(ids[4:]), 5: set(ids[2:4]), 0: set(ids[:2])}
    run = [context.task_id for context in handlers.runs]
    assert [bands[9], bands[5], bands[0]] == [set(run[:2]), set(run[2:4]), set(run[4:])]


async def test_no_more_than_the_concurrency_is_ever_held(world: World) -> None:
    staff = await world.hire(concurrency=3)

    for number in range(10):
        await world.submit("hold", priority=number)

    assert 3 == len(handlers.runs)
    assert 3 == len(await world.backend.broker.owned(QUEUE, worker=staff.settings.worker_id))


async def test_slots_that_come_free_are_filled_at_once(world: World) -> None:
    await world.hire(concurrency=2)
    for number in range(6):
        await world.submit("hold", payload=json.dumps({"gate": str(number % 2)}))
    assert 2 == len(handlers.runs)

    handlers.gate("0").open()
    await world.settle()

    assert 4 == len(handlers.runs)
    assert 0 == world.clock.monotonic()


async def test_what_a_wake_brings_beyond_the_capacity_goes_to_a_peer_at_once(world: World) -> None:
    await world.hire(concurrency=1)
    await world.hire(concurrency=4)

    fields = {"task_type": "hold", "payload": "{}"}
    await world.tasks.submit_many([{**fields, "priority": priority} for priority in range(5)])
    await world.settle()

    assert 5 == len(handlers.runs)
    assert 0 == world.clock.monotonic()


async def test_events_tell_of_each_start_once(world: World) -> None:
    async with world.backend.events.subscribe() as events:
        await world.hire(concurrency=4)
        ids = [await world.submit() for _ in range(8)]
        heard = [await anext(events) for _ in range(25)]

    assert dict.fromkeys(ids, 1) == starts_of(heard)
