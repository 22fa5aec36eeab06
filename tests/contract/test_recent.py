"""The list of the last tasks: which are in it, and how many are left out."""

from datetime import timedelta

from msgspec.structs import replace

from dtq.domain.status import TaskStatus
from dtq.domain.task import QueueName
from tests.contract.harness import Harness
from tests.contract.steps import (
    LIMITS,
    bare,
    bring_to,
    now,
    submit,
)
from tests.factories import QUEUE, an_admission

SECOND = timedelta(seconds=1)
OTHER = QueueName("other")


async def test_recent_leaves_out_what_cannot_be_read(harness: Harness) -> None:
    first, garbled, last = [await submit(harness) for _ in range(3)]
    await harness.garble(garbled.task_id)

    found = await harness.backend.broker.recent(queue=None, status=None, limit=2)

    assert [bare(last), bare(first)] == list(found.tasks)
    assert 1 == found.unreadable


async def test_recent_counts_what_cannot_be_read_only_as_far_as_it_looks_and_where_it_may_match(
    harness: Harness,
) -> None:
    garbled = await submit(harness, queue=OTHER)
    await harness.garble(garbled.task_id)
    await harness.advance(SECOND)
    await submit(harness)
    queries: dict[tuple[QueueName | None, TaskStatus | None, int], int] = {
        (None, None, 1): 0,
        (None, None, 2): 1,
        (OTHER, None, 1): 1,
        (QUEUE, None, 2): 0,
        (OTHER, TaskStatus.QUEUED, 1): 1,
        (OTHER, TaskStatus.FAILED, 1): 1,
    }

    for (queue, status, limit), unreadable in queries.items():
        found = await harness.backend.broker.recent(queue=queue, status=status, limit=limit)
        assert unreadable == found.unreadable, (queue, status, limit)


async def test_recent_lists_tasks_newest_first_without_payload(harness: Harness) -> None:
    tasks = []
    for _ in range(3):
        tasks.append(await submit(harness))
        await harness.advance(SECOND)

    found = (await harness.backend.broker.recent(queue=None, status=None, limit=10)).tasks

    assert [bare(task) for task in reversed(tasks)] == list(found)


async def test_recent_lists_at_most_the_limit(harness: Harness) -> None:
    await submit(harness)
    await harness.advance(SECOND)
    task = await submit(harness)

    assert [bare(task)] == list((await harness.backend.broker.recent(queue=None, status=None, limit=1)).tasks)


async def test_recent_lists_what_matches_queue_and_status(harness: Harness) -> None:
    wanted = await bring_to(harness, TaskStatus.CANCELLED, queue=OTHER)
    await bring_to(harness, TaskStatus.CANCELLED)
    await bring_to(harness, TaskStatus.QUEUED, queue=OTHER)

    found = (await harness.backend.broker.recent(queue=OTHER, status=TaskStatus.CANCELLED, limit=1)).tasks

    assert [bare(wanted)] == list(found)


async def test_recent_looks_at_the_last_10_000_tasks(harness: Harness) -> None:
    await submit(harness, queue=OTHER)
    for batch in range(10):
        await harness.advance(SECOND)
        admissions = [an_admission(now=now(harness), priority=batch) for _ in range(1_000)]
        await harness.backend.broker.create(admissions, limits=replace(LIMITS, queue_depth=20_000))

    broker = harness.backend.broker
    assert [] == list((await broker.recent(queue=OTHER, status=None, limit=1)).tasks)
    assert 10_000 == len((await broker.recent(queue=None, status=None, limit=20_000)).tasks)


async def test_recent_leaves_out_what_is_gone(harness: Harness) -> None:
    kept = await submit(harness)
    gone = await submit(harness)
    await harness.evict(gone.task_id)

    assert [bare(kept)] == list((await harness.backend.broker.recent(queue=None, status=None, limit=10)).tasks)
