"""Looking at queues, pausing, resuming and purging them."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta

import pytest

from dtq.domain.audit import AuditEntry
from dtq.domain.errors import BrokerRefused, BrokerUnavailable, InvalidRequest
from dtq.domain.events import EventType
from dtq.domain.status import TaskStatus
from tests.application.link import Loss
from tests.application.world import World
from tests.factories import OPERATOR, QUEUE, WORKER

S = TaskStatus


async def audit_of(world: World) -> list[AuditEntry]:
    return list(await world.backend.audit.recent(limit=10))


async def test_the_figures_of_a_queue(world: World) -> None:
    await world.submit()
    await world.submit(delay_seconds=5)

    stats = await world.queues.stats("default")

    assert (1, 0, False, 1) == (stats.depth, stats.pending, stats.paused, stats.retry_scheduled)
    assert ["default"] == list(await world.queues.names())


async def test_a_queue_that_cannot_be_read_hides_no_other(world: World) -> None:
    for queue in ("a", "b", "c"):
        await world.submit(queue=queue)
    world.link.refuse("stats")

    assert ["b", "c"] == [stats.queue for stats in await world.queues.all(limit=9)]
    assert [{"queue": "a", "reason": "stats is refused"}] == world.notes.of("queue_unreadable")


async def test_where_no_queue_can_be_read_the_list_says_so(world: World) -> None:
    await world.submit()
    world.link.refuse("stats")

    with pytest.raises(BrokerRefused):
        await world.queues.all(limit=9)


async def test_pause_and_resume_are_audited_and_announced(world: World) -> None:
    async with world.backend.events.subscribe() as events:
        await world.queues.pause("default", by=OPERATOR)
        assert (await world.queues.stats("default")).paused
        await world.queues.resume("default", by=OPERATOR)
        heard = [await anext(events), await anext(events)]

    assert not (await world.queues.stats("default")).paused
    assert ["queue.resume", "queue.pause"] == [entry.action for entry in await audit_of(world)]
    assert [EventType.CONFIGURATION_CHANGED] * 2 == [event.type for event in heard]
    assert heard == world.notes.events
    assert [True, False] == [(event.metadata or {})["paused"] for event in heard]


async def test_a_resume_counts_although_the_workers_could_not_be_told(world: World) -> None:
    world.link.lose("tell_queue", Loss.BEFORE)

    await world.queues.resume("default", by=OPERATOR)

    assert [{"kind": "work", "error": "BrokerUnavailable"}] == world.notes.of("signal_lost")


async def test_a_pause_is_not_sent_twice(world: World) -> None:
    world.link.lose("pause", Loss.AFTER)

    with pytest.raises(BrokerUnavailable):
        await world.queues.pause("default", by=OPERATOR)

    assert 1 == len(await audit_of(world))


async def test_a_purge_cancels_what_no_worker_has_read(world: World) -> None:
    await world.tasks.submit_many([{"task_type": "note", "payload": "{}"}] * 250)
    read = (await world.backend.broker.fetch(QUEUE, worker=WORKER, limit=1, reap_idle=None)).deliveries
    world.state.add_entry(QUEUE, 4, {"task_id": "nobody"})
    counted: list[int] = []

    purged = await world.queues.purge("default", by=OPERATOR, on_progress=counted.append)

    assert (250, [100, 200, 250]) == (purged, counted)
    assert 1 == (await world.queues.stats("default")).depth
    assert [S.QUEUED] == [one.task.status for one in read if one.task is not None]
    (entry,) = await audit_of(world)
    assert ("queue.purge", "default", 250) == (entry.action, entry.queue, entry.count)
    assert 249 == len([change for change in world.notes.changes if change.after.status is S.CANCELLED])


async def test_what_a_purge_removed_counts_although_its_answer_was_lost(world: World) -> None:
    await world.tasks.submit_many([{"task_type": "note", "payload": "{}"}] * 3)
    world.link.lose("commit", Loss.AFTER)

    purging = asyncio.ensure_future(world.queues.purge("default", by=OPERATOR))
    await world.advance(1)

    (entry,) = await audit_of(world)
    assert (3, 3) == (purging.result(), entry.count)
    assert 3 == len([change for change in world.notes.changes if change.after.status is S.CANCELLED])


async def test_an_empty_queue_is_purged_of_nothing(world: World) -> None:
    assert 0 == await world.queues.purge("default", by=OPERATOR)
    assert [0] == [entry.count for entry in await audit_of(world)]


async def test_a_purge_leaves_what_a_worker_takes_meanwhile(world: World) -> None:
    task_id = await world.submit()
    world.link.stall("commit")
    purging = asyncio.ensure_future(world.queues.purge("default", by=OPERATOR))
    await world.settle()
    await world.hire()
    await world.settle()

    world.link.go_on()
    await world.settle()

    assert 0 == await purging
    assert S.SUCCEEDED == await world.status(task_id)


async def test_a_purge_that_fails_half_way_is_audited_as_far_as_it_came(world: World) -> None:
    await world.tasks.submit_many([{"task_type": "note", "payload": "{}"}] * 150)
    purging = asyncio.ensure_future(
        world.queues.purge(
            "default", by=OPERATOR, on_progress=lambda _: world.link.lose("commit", Loss.BEFORE, times=9)
        )
    )

    await world.advance(5)

    assert isinstance(purging.exception(), BrokerUnavailable)
    assert [100] == [entry.count for entry in await audit_of(world)]


async def test_submissions_during_a_purge_cannot_keep_it_going(world: World) -> None:
    await world.submit()

    def add_more(purged: int) -> None:
        assert purged < 3
        world.state.add_entry(QUEUE, 4, {"task_id": "nobody"})

    purged = await world.queues.purge("default", by=OPERATOR, on_progress=add_more)

    assert 1 == purged


@pytest.mark.parametrize("queue", ["", "UPPER", "a" * 65, "a b", "a\n"])
async def test_a_bad_name_is_refused(world: World, queue: str) -> None:
    calls: list[Callable[[], Coroutine[None, None, object]]] = [
        lambda: world.queues.stats(queue),
        lambda: world.queues.pause(queue, by=OPERATOR),
        lambda: world.queues.resume(queue, by=OPERATOR),
        lambda: world.queues.purge(queue, by=OPERATOR),
    ]
    for call in calls:
        with pytest.raises(InvalidRequest, match="queue: must be text of the form"):
            await call()


async def test_an_outage_is_answered_within_four_seconds(world: World) -> None:
    world.link.is_down = True
    asking = asyncio.ensure_future(world.queues.names())

    await world.clock.advance(timedelta(seconds=4))

    assert isinstance(asking.exception(), BrokerUnavailable)
