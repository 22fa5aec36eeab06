"""Signals, EventBus and AuditLog: one test for each sentence of their docstrings."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TypeVar

from dtq.domain import lifecycle
from dtq.domain.audit import DONE
from dtq.domain.events import EventType
from dtq.domain.status import TaskStatus
from dtq.domain.task import QueueName
from dtq.ports.workers import Signal, SignalKind
from tests.contract.harness import Harness
from tests.contract.recording import recording
from tests.contract.steps import (
    PEER,
    bring_to,
    cancel,
    decide_start,
    end,
    make,
    now,
    promote,
    reap_one,
    run,
    seconds,
    submit,
    take_one,
)
from tests.factories import (
    OPERATOR,
    QUEUE,
    WORKER,
    a_fault,
    a_success,
    a_task_id,
    a_token,
    an_audit_entry,
    an_event,
)

E = EventType
OTHER = QueueName("other")
WORK = Signal(kind=SignalKind.WORK)
T = TypeVar("T")


async def _first(heard: AsyncIterator[T], number: int) -> Sequence[T]:
    async with asyncio.timeout(10):
        return [await anext(heard) for _ in range(number)]


async def test_a_signal_to_a_worker_reaches_that_worker(harness: Harness) -> None:
    signals = harness.backend.signals
    wanted = Signal(kind=SignalKind.CANCEL, task_id=a_task_id())

    async with signals.listen(WORKER, queue=QUEUE) as mine, signals.listen(PEER, queue=QUEUE) as other:
        await signals.tell_worker(WORKER, wanted)
        await signals.tell_worker(PEER, WORK)

        assert [wanted] == await _first(mine, 1)
        assert [WORK] == await _first(other, 1)


async def test_a_signal_to_a_queue_reaches_all_its_workers(harness: Harness) -> None:
    signals = harness.backend.signals

    async with signals.listen(WORKER, queue=QUEUE) as first, signals.listen(PEER, queue=QUEUE) as second:
        await signals.tell_queue(QUEUE, WORK)

        assert ([WORK], [WORK]) == (await _first(first, 1), await _first(second, 1))


async def test_a_signal_to_another_queue_is_not_heard(harness: Harness) -> None:
    signals = harness.backend.signals
    mark = Signal(kind=SignalKind.CANCEL, task_id=a_task_id())

    async with signals.listen(WORKER, queue=QUEUE) as heard:
        await signals.tell_queue(OTHER, WORK)
        await signals.tell_worker(WORKER, mark)

        assert [mark] == await _first(heard, 1)


async def test_signals_are_heard_in_order(harness: Harness) -> None:
    signals = harness.backend.signals
    told = [Signal(kind=SignalKind.CANCEL, task_id=a_task_id()) for _ in range(20)]

    async with signals.listen(WORKER, queue=QUEUE) as heard:
        for signal in told:
            await signals.tell_worker(WORKER, signal)

        assert told == await _first(heard, 20)


async def test_what_was_told_before_is_not_heard(harness: Harness) -> None:
    signals = harness.backend.signals
    await signals.tell_worker(WORKER, Signal(kind=SignalKind.CANCEL, task_id=a_task_id()))

    async with signals.listen(WORKER, queue=QUEUE) as heard:
        await signals.tell_worker(WORKER, WORK)

        assert [WORK] == await _first(heard, 1)


async def test_telling_nobody_is_no_fault(harness: Harness) -> None:
    await harness.backend.signals.tell_worker(WORKER, WORK)
    await harness.backend.signals.tell_queue(QUEUE, WORK)


async def test_an_event_of_no_task_is_published_as_it_is(harness: Harness) -> None:
    event = an_event(
        type=E.CONFIGURATION_CHANGED, metadata={"queue": "q", "paused": True, "n": 3}, worker_id=None, attempt=None
    )

    async with recording(harness) as record:
        await harness.backend.events.publish(event)

        assert [event] == await record.heard()


async def test_every_subscriber_hears_every_event(harness: Harness) -> None:
    async with recording(harness) as first:
        task = await submit(harness)
        async with recording(harness) as second:
            await cancel(harness, task)

            assert [E.TASK_CANCELLED] == await second.types(task.task_id)
        assert [E.TASK_QUEUED, E.TASK_CANCELLED] == await first.types(task.task_id)


async def test_an_event_carries_the_changes_token_and_time(harness: Harness) -> None:
    async with recording(harness) as record:
        task = await submit(harness)
        (event,) = await record.heard()

    assert (task.version, task.created_at, task.task_id, task.queue, task.task_type, 0) == (
        event.event_id,
        event.ts,
        event.task_id,
        event.queue,
        event.task_type,
        event.attempt,
    )


async def test_a_tasks_events_come_in_the_order_of_its_changes(harness: Harness) -> None:
    async with recording(harness) as record:
        task = await end(harness, await run(harness, delay=seconds(0), max_attempts=3), a_fault())
        task = await promote(harness, task)
        task = await make(harness, decide_start(harness, await take_one(harness, task)))
        task = await make(harness, decide_start(harness, await reap_one(harness, task), worker=PEER))
        task = await end(harness, task, a_fault(retryable=False))
        await make(harness, lifecycle.requeue(task, now=now(harness), token=a_token(), by=OPERATOR))

        assert [
            E.TASK_QUEUED,
            E.TASK_STARTED,
            E.TASK_RETRY_SCHEDULED,
            E.TASK_RETRIED,
            E.TASK_STARTED,
            E.TASK_STARTED,
            E.TASK_DEAD_LETTERED,
            E.TASK_QUEUED,
        ] == await record.types(task.task_id)


async def test_a_delayed_task_is_told_of_when_it_is_queued(harness: Harness) -> None:
    async with recording(harness) as record:
        task = await submit(harness, delay=seconds(5))
        assert [] == await record.heard()

        await promote(harness, task)
        assert [E.TASK_QUEUED] == await record.types(task.task_id)


async def test_events_of_changes_in_one_commit_come_in_its_order(harness: Harness) -> None:
    tasks = [await submit(harness, priority=priority) for priority in range(5)]
    changes = [lifecycle.purge(task, now=now(harness), token=a_token()) for task in tasks]

    async with recording(harness) as record:
        await harness.backend.broker.commit(changes)  # type: ignore[arg-type]  # a queued task can be purged

        assert [task.task_id for task in tasks] == [event.task_id for event in await record.heard()]


async def test_the_audit_log_is_read_newest_first(harness: Harness) -> None:
    entries = [an_audit_entry(request_id=f"request-{number}") for number in range(5)]
    for entry in entries:
        await harness.backend.audit.record(entry)

    assert entries[::-1] == list(await harness.backend.audit.recent(limit=9))
    assert entries[:2:-1] == list(await harness.backend.audit.recent(limit=2))


async def test_an_audit_entry_is_kept_as_it_was_written(harness: Harness) -> None:
    entry = an_audit_entry(
        task_id=a_task_id(), queue=None, count=0, actor="a b\u00fc", request_id="", outcome="TASK_TERMINAL"
    )

    await harness.backend.audit.record(entry)

    assert [entry] == list(await harness.backend.audit.recent(limit=9))


async def test_a_deed_is_audited_in_its_own_step(harness: Harness) -> None:
    queued = await cancel(harness, await submit(harness))
    running = await cancel(harness, await run(harness))
    dead = await bring_to(harness, TaskStatus.DEAD_LETTERED)
    await make(harness, lifecycle.requeue(dead, now=now(harness), token=a_token(), by=OPERATOR))
    worse = await bring_to(harness, TaskStatus.DEAD_LETTERED)
    await make(harness, lifecycle.discard(worse, now=now(harness), token=a_token(), by=OPERATOR))

    entries = list(await harness.backend.audit.recent(limit=9))[::-1]

    assert [
        ("task.cancel", queued.task_id),
        ("task.cancel_requested", running.task_id),
        ("dlq.requeue", dead.task_id),
        ("dlq.discard", worse.task_id),
    ] == [(entry.action, entry.task_id) for entry in entries]
    assert {("operator", "request-1", QUEUE, DONE)} == {
        (entry.actor, entry.request_id, entry.queue, entry.outcome) for entry in entries
    }


async def test_what_is_no_act_of_an_operator_is_not_audited(harness: Harness) -> None:
    await end(harness, await run(harness), a_success())

    assert [] == list(await harness.backend.audit.recent(limit=9))
