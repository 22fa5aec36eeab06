"""No memory: new work is refused, and everything that ends or frees work goes on."""

import pytest

from dtq.domain.errors import BrokerOutOfMemory
from dtq.domain.status import TaskStatus
from dtq.ports.answers import Applied
from tests.contract.harness import Harness
from tests.contract.kinds import KINDS, prepared
from tests.contract.recording import recording
from tests.contract.steps import (
    PEER,
    VISIBILITY,
    bare,
    bring_to,
    claim_due,
    held_lease,
    now,
    run,
    seconds,
    submit,
    take,
    write,
)
from tests.factories import QUEUE, WORKER, a_token, an_audit_entry, an_event

REFUSED = frozenset({"submit", "submit_delayed", "requeue", "requeue_rebuilt"})


@pytest.mark.parametrize("kind", sorted(REFUSED))
async def test_what_brings_new_work_is_refused_and_writes_nothing(harness: Harness, kind: str) -> None:
    change = await prepared(harness, kind)
    before = await harness.backend.broker.load(change.after.task_id), await harness.census()
    await harness.fill_memory()

    with pytest.raises(BrokerOutOfMemory):
        await write(harness, change)

    assert before == (await harness.backend.broker.load(change.after.task_id), await harness.census())
    await harness.free_memory()
    assert isinstance(await write(harness, change), Applied)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in REFUSED])
async def test_every_other_change_is_made(harness: Harness, kind: str) -> None:
    change = await prepared(harness, kind)
    await harness.fill_memory()

    async with recording(harness) as record:
        assert isinstance(await write(harness, change), Applied)

        assert ([] if change.event is None else [change.event]) == await record.heard()


async def test_work_is_fetched_extended_and_handed_back(harness: Harness) -> None:
    running = await run(harness)
    waiting = await submit(harness)
    await harness.fill_memory()
    broker = harness.backend.broker

    (delivery,) = await take(harness)
    (report,) = await broker.extend([held_lease(running)], worker=WORKER)
    await broker.release([delivery.receipt], worker=WORKER)

    assert waiting.receipt == delivery.receipt
    assert report.kept
    assert [waiting.receipt] == [one.receipt for one in await take(harness, worker=PEER, reap_idle=VISIBILITY)]


async def test_entries_are_acknowledged_and_buried(harness: Harness) -> None:
    task = await bring_to(harness, TaskStatus.SUCCEEDED)
    await harness.duplicate(task.task_id)
    await harness.forge(QUEUE, priority=1, fields={"what": "is this"})
    await harness.fill_memory()
    left, foreign = await take(harness)
    broker = harness.backend.broker

    assert await broker.acknowledge(left, worker=WORKER, absorbed=False, token=a_token())
    assert await broker.bury(foreign, worker=WORKER, at=now(harness))


async def test_the_leader_goes_on(harness: Harness) -> None:
    task = await submit(harness, delay=seconds(1))
    await harness.advance(seconds(2))
    await harness.fill_memory()

    (taken,) = await claim_due(harness)

    broker = harness.backend.broker
    await harness.advance(seconds(61))
    assert 1 == await broker.return_stale(claimed_before=now(harness), now=now(harness), limit=9)
    assert await broker.forget(task.task_id, version=task.version)
    assert bare(task) == taken


async def test_queues_are_paused_resumed_and_emptied(harness: Harness) -> None:
    await bring_to(harness, TaskStatus.DEAD_LETTERED)
    await harness.fill_memory()
    queues = harness.backend.queues

    await queues.pause(QUEUE, audit=an_audit_entry(), event=an_event())
    assert (await queues.stats(QUEUE)).paused
    await queues.resume(QUEUE, audit=an_audit_entry(), event=an_event())
    assert not (await queues.stats(QUEUE)).paused
    await harness.backend.audit.record(an_audit_entry())
    assert 1 == await harness.backend.dead_letters.purge(audit=an_audit_entry())


async def test_a_queue_can_be_registered_and_its_lost_groups_repaired(harness: Harness) -> None:
    task = await submit(harness)
    await harness.fill_memory()
    await harness.lose_groups(QUEUE)

    await harness.backend.queues.register(QUEUE)

    assert [task.receipt] == [one.receipt for one in await take(harness)]
