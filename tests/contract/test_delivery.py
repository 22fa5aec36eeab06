"""What a delivery is: the entry, its task, its mark."""

from dtq.domain.entry import entry_fields
from tests.contract.harness import Harness
from tests.contract.steps import (
    PEER,
    VISIBILITY,
    bare,
    cancel,
    now,
    run,
    stored,
    submit,
    take,
)
from tests.factories import QUEUE, WORKER, a_task


async def test_a_delivery_carries_the_entrys_fields_and_the_task(harness: Harness) -> None:
    task = await submit(harness, payload='{"n": []}', idempotency_key="k", metadata='{"m": 1}')

    (delivery,) = await take(harness)

    assert entry_fields(task) | {"payload": '{"n": []}'} == dict(delivery.fields)
    assert task == delivery.task
    assert not delivery.cancelled


async def test_a_delivery_shows_the_task_as_stored_now(harness: Harness) -> None:
    task = await run(harness)
    await harness.advance(VISIBILITY)
    task = await cancel(harness, task)

    (delivery,) = await take(harness, worker=PEER, reap_idle=VISIBILITY)

    assert task == delivery.task
    assert task.cancel_requested


async def test_a_delivery_whose_record_is_gone_has_no_task(harness: Harness) -> None:
    task = await submit(harness)
    await harness.evict(task.task_id)

    (delivery,) = await take(harness)

    assert delivery.task is None
    assert not delivery.cancelled
    assert task.payload == delivery.fields["payload"]


async def test_a_delivery_of_a_cancelled_task_whose_record_is_gone_is_marked(harness: Harness) -> None:
    task = await submit(harness)
    await harness.duplicate(task.task_id)
    await cancel(harness, task)
    await harness.evict(task.task_id)

    (delivery,) = await take(harness)

    assert (None, True) == (delivery.task, delivery.cancelled)


async def test_fetch_tells_the_brokers_time(harness: Harness) -> None:
    before = now(harness)
    fetched = await harness.backend.broker.fetch(QUEUE, worker=WORKER, limit=1, reap_idle=None)

    assert before <= fetched.now <= now(harness)


async def test_a_foreign_entry_is_delivered_as_it_is(harness: Harness) -> None:
    receipt = await harness.forge(QUEUE, priority=2, fields={"task_id": "", "what": "is this"})

    (delivery,) = await take(harness)

    assert (receipt, None) == (delivery.receipt, delivery.task)
    assert {"task_id": "", "what": "is this"} == dict(delivery.fields)


async def test_a_task_of_a_forged_entry_comes_with_the_entrys_payload(harness: Harness) -> None:
    task = await submit(harness, payload='{"true": 1}')
    await take(harness)
    fields = entry_fields(a_task(task_id=task.task_id)) | {"payload": '{"forged": 1}'}
    receipt = await harness.forge(QUEUE, priority=5, fields=fields)

    (delivery,) = await take(harness)

    assert receipt == delivery.receipt
    assert delivery.task is not None
    assert (bare(task), '{"forged": 1}') == (bare(delivery.task), delivery.task.payload)
    assert '{"true": 1}' == (await stored(harness, task.task_id)).payload


async def test_every_delivery_of_a_batch_has_its_own_task(harness: Harness) -> None:
    tasks = [await submit(harness, payload=f'{{"n": {number}}}') for number in range(25)]

    assert tasks == [one.task for one in await take(harness)]


async def test_of_a_queue_whose_owners_are_forgotten_nobody_owns_anything(harness: Harness) -> None:
    await run(harness, worker=WORKER)
    await harness.lose_groups(QUEUE)

    assert [] == list(await harness.backend.broker.owned(QUEUE, worker=WORKER))
