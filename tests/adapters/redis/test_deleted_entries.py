"""Entries, groups and names that somebody deleted by hand, or a flush: whatever is left is served all the same."""

from dtq.adapters.redis.keys import GROUP
from dtq.domain.task import Task
from tests.adapters.redis.schema import Schema
from tests.contract.steps import PEER, VISIBILITY, held_lease, run, submit, take
from tests.factories import QUEUE, WORKER


async def delete_entry(schema: Schema, task: Task) -> None:
    assert task.entry_id is not None
    assert await schema.call("XDEL", schema.keys.stream(task.queue, task.priority), task.entry_id) == 1


async def test_what_is_left_behind_is_reaped_although_the_entry_before_it_was_deleted(schema: Schema) -> None:
    deleted, left = [await submit(schema.harness, priority=4) for _ in range(2)]
    await take(schema.harness)
    await schema.harness.advance(VISIBILITY)
    await delete_entry(schema, deleted)

    reaped = await take(schema.harness, worker=PEER, reap_idle=VISIBILITY)

    assert [left.receipt] == [one.receipt for one in reaped]


async def test_what_a_wait_brought_is_taken_although_the_entry_before_it_was_deleted(schema: Schema) -> None:
    deleted, left = [await submit(schema.harness, priority=4) for _ in range(2)]
    receipts = [one.receipt for one in await take(schema.harness)]
    await delete_entry(schema, deleted)

    taken = await take(schema.harness, held=receipts)

    assert [left.receipt] == [one.receipt for one in taken]


async def test_a_lease_lasts_although_the_group_of_its_stream_was_destroyed(schema: Schema) -> None:
    first, other = await run(schema.harness, priority=4), await run(schema.harness, priority=5)
    await schema.call("XGROUP", "DESTROY", schema.keys.stream(QUEUE, 4), GROUP)

    leases = [held_lease(first), held_lease(other)]
    reports = await schema.harness.backend.broker.extend(leases, worker=WORKER)

    assert [True, True] == [report.kept for report in reports]


async def test_a_sweep_that_finds_its_groups_lost_makes_its_queue_known_again(schema: Schema) -> None:
    await schema.harness.backend.queues.register(QUEUE)
    await schema.call("DEL", schema.keys.queues, *schema.keys.streams(QUEUE))

    await take(schema.harness)

    assert [QUEUE] == list(await schema.harness.backend.queues.names())
