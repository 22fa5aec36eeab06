"""WorkQueue.acknowledge and bury: one test for each sentence of their docstrings."""

from dtq.domain.entry import MALFORMED_ENTRY
from dtq.domain.events import EventType
from dtq.domain.status import Place, TaskStatus
from tests.contract.harness import Harness
from tests.contract.recording import recording
from tests.contract.steps import (
    bring_to,
    cancel,
    decide_start,
    end,
    make,
    now,
    only,
    stored,
    submit,
    take,
    take_one,
)
from tests.factories import QUEUE, WORKER, a_success, a_token


async def test_acknowledging_removes_the_entry_and_changes_no_task(harness: Harness) -> None:
    task = await submit(harness)
    await take(harness)
    second = await harness.duplicate(task.task_id)
    (delivery,) = await take(harness)
    assert second == delivery.receipt

    broker = harness.backend.broker
    assert await broker.acknowledge(delivery, worker=WORKER, absorbed=True, token=a_token())

    assert task == await stored(harness, task.task_id)
    assert [task.receipt] == list(await broker.owned(QUEUE, worker=WORKER))
    assert 1 == (await harness.backend.queues.stats(QUEUE)).depth


async def test_acknowledging_twice_removes_once_and_tells_once(harness: Harness) -> None:
    task = await submit(harness)
    await harness.duplicate(task.task_id)
    first, second = await take(harness)
    duplicate = only(one for one in (first, second) if one.receipt != task.receipt)

    async with recording(harness) as record:
        broker = harness.backend.broker
        assert await broker.acknowledge(duplicate, worker=WORKER, absorbed=True, token=a_token())
        assert not await broker.acknowledge(duplicate, worker=WORKER, absorbed=True, token=a_token())

        assert [EventType.DUPLICATE_ABSORBED] == await record.types(task.task_id)


async def test_an_absorbed_duplicate_is_told_of_under_the_token(harness: Harness) -> None:
    task = await submit(harness)
    await harness.duplicate(task.task_id)
    deliveries = await take(harness)
    duplicate = only(one for one in deliveries if one.receipt != task.receipt)
    token = a_token()

    async with recording(harness) as record:
        await harness.backend.broker.acknowledge(duplicate, worker=WORKER, absorbed=True, token=token)
        (event,) = await record.heard()

    assert (token, task.task_id, task.queue, task.task_type) == (
        event.event_id,
        event.task_id,
        event.queue,
        event.task_type,
    )


async def test_what_is_acknowledged_and_not_absorbed_is_not_told_of(harness: Harness) -> None:
    task = await bring_to(harness, TaskStatus.SUCCEEDED)
    await harness.duplicate(task.task_id)
    (delivery,) = await take(harness)

    async with recording(harness) as record:
        assert await harness.backend.broker.acknowledge(delivery, worker=WORKER, absorbed=False, token=a_token())
        assert [] == await record.heard()

    assert not any((await harness.census()).values())


async def test_nothing_is_acknowledged_if_the_task_has_moved_since(harness: Harness) -> None:
    task = await submit(harness)
    (delivery,) = await take(harness)
    await make(harness, decide_start(harness, delivery))

    async with recording(harness) as record:
        acknowledged = await harness.backend.broker.acknowledge(delivery, worker=WORKER, absorbed=True, token=a_token())
        assert [] == await record.heard()

    assert not acknowledged
    assert {task.task_id} == (await harness.census())[Place.HELD]


async def test_nothing_is_acknowledged_if_the_record_is_gone_since(harness: Harness) -> None:
    task = await submit(harness)
    (delivery,) = await take(harness)
    await harness.evict(task.task_id)

    assert not await harness.backend.broker.acknowledge(delivery, worker=WORKER, absorbed=False, token=a_token())
    assert {task.task_id} == (await harness.census())[Place.HELD]


async def test_an_entry_without_record_is_acknowledged_while_there_is_none(harness: Harness) -> None:
    task = await submit(harness)
    await harness.duplicate(task.task_id)
    await cancel(harness, task)
    await harness.evict(task.task_id)
    (delivery,) = await take(harness)

    assert await harness.backend.broker.acknowledge(delivery, worker=WORKER, absorbed=False, token=a_token())
    assert not any((await harness.census()).values())


async def test_an_entry_that_names_no_task_is_buried_as_malformed(harness: Harness) -> None:
    receipt = await harness.forge(QUEUE, priority=4, fields={"task_id": "x\ny", "payload": "secret"})
    (delivery,) = await take(harness)

    assert await harness.backend.broker.bury(delivery, worker=WORKER, at=now(harness))

    (letter,) = await harness.backend.dead_letters.recent(limit=9)
    assert letter.task is None
    assert (MALFORMED_ENTRY, "x y", QUEUE, str(receipt.priority)) == tuple(
        letter.fields[name] for name in ("last_error", "task_id", "original_queue", "priority")
    )
    assert "secret" not in letter.fields.values()
    assert 0 == (await harness.backend.queues.stats(QUEUE)).depth


async def test_an_entry_is_buried_once(harness: Harness) -> None:
    await harness.forge(QUEUE, priority=4, fields={"what": "is this"})
    (delivery,) = await take(harness)
    broker = harness.backend.broker

    assert await broker.bury(delivery, worker=WORKER, at=now(harness))
    assert not await broker.bury(delivery, worker=WORKER, at=now(harness))
    assert 1 == await harness.backend.dead_letters.count()


async def test_the_entry_of_a_finished_task_is_gone(harness: Harness) -> None:
    task = await submit(harness)
    task = await make(harness, decide_start(harness, await take_one(harness, task)))

    await end(harness, task, a_success())

    assert [] == list(await harness.backend.broker.owned(QUEUE, worker=WORKER))
    assert 0 == (await harness.backend.queues.stats(QUEUE)).depth
