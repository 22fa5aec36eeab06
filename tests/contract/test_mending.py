"""Examiner: one test for each sentence of the acts that mend."""

from datetime import timedelta

import pytest

from dtq.domain.facts import (
    KeyFact,
    Record,
    TaskFact,
)
from dtq.domain.findings import Kind
from dtq.domain.idempotency import IdempotencyRecord, RecordState
from dtq.domain.status import TaskStatus
from dtq.domain.task import EntryId, QueueName, TaskId, Version, WorkerId
from tests.contract.examining import again, found, kinds, the_fact
from tests.contract.harness import Harness
from tests.contract.steps import (
    VISIBILITY,
    bring_to,
    key_record,
    now,
    run,
    seconds,
    submit,
    take,
    take_one,
)
from tests.factories import QUEUE

DAY = timedelta(days=1)


async def test_a_key_is_rewritten_or_removed_only_as_it_was_read(harness: Harness) -> None:
    task = await submit(harness, idempotency_key="key")
    fact = await the_fact(harness, KeyFact, key="key")
    record = IdempotencyRecord(task_id=task.task_id, state=RecordState.FAILED, updated_at=now(harness))
    examiner = harness.backend.examiner

    assert not await examiner.rewrite_key(QUEUE, key="key", text="another", record=None, lifetime=DAY)
    assert await examiner.rewrite_key(QUEUE, key="key", text=fact.text, record=record, lifetime=DAY)
    assert record == await key_record(harness, "key")
    assert [Kind.KEY] == await kinds(harness)
    assert [None] == list(await again(harness, fact))
    fact = await the_fact(harness, KeyFact, key="key")
    assert await examiner.rewrite_key(QUEUE, key="key", text=fact.text, record=None, lifetime=DAY)
    assert await key_record(harness, "key") is None


@pytest.mark.parametrize("status", [TaskStatus.PENDING, TaskStatus.QUEUED, TaskStatus.RUNNING, TaskStatus.RETRYING])
async def test_a_key_whose_record_is_gone_is_written_where_nothing_is(harness: Harness, status: TaskStatus) -> None:
    task = await bring_to(harness, status, idempotency_key="key")
    fact = await the_fact(harness, KeyFact, key="key")
    examiner = harness.backend.examiner
    record = IdempotencyRecord(task_id=task.task_id, state=RecordState.PROCESSING, updated_at=now(harness))
    assert not await examiner.rewrite_key(QUEUE, key="key", text="", record=record, lifetime=DAY)
    await examiner.rewrite_key(QUEUE, key="key", text=fact.text, record=None, lifetime=DAY)
    assert [Kind.KEY] == await kinds(harness)

    assert await examiner.rewrite_key(QUEUE, key="key", text="", record=record, lifetime=DAY)

    assert record == await key_record(harness, "key")
    assert [] == await found(harness)


async def put_under(harness: Harness, key: str, *, task_id: TaskId) -> None:
    """Let the record of a key name another task."""
    fact = await the_fact(harness, KeyFact, key=key)
    record = IdempotencyRecord(task_id=task_id, state=RecordState.PROCESSING, updated_at=now(harness))
    assert await harness.backend.examiner.rewrite_key(QUEUE, key=key, text=fact.text, record=record, lifetime=DAY)


@pytest.mark.parametrize("status", [TaskStatus.PENDING, TaskStatus.QUEUED, TaskStatus.RUNNING, TaskStatus.RETRYING])
@pytest.mark.parametrize("stranger", ["another", "gone", "garbled"])
async def test_a_living_task_has_what_stands_under_its_key_and_names_another(
    harness: Harness, status: TaskStatus, stranger: str
) -> None:
    task = await bring_to(harness, status, idempotency_key="key")
    if stranger == "garbled":
        await harness.garble_key(QUEUE, key="key")
    else:
        named = (await submit(harness)).task_id if stranger == "another" else TaskId("f" * 32)
        await put_under(harness, "key", task_id=named)

    findings = [one for one in await found(harness) if one.subject == task.task_id]

    stored = await the_fact(harness, KeyFact, key="key")
    assert [(Kind.KEY, stored)] == [
        (one.kind, one.fact.key if isinstance(one.fact, TaskFact) else None) for one in findings
    ]
    record = IdempotencyRecord(task_id=task.task_id, state=RecordState.PROCESSING, updated_at=now(harness))
    examiner = harness.backend.examiner
    assert await examiner.rewrite_key(QUEUE, key="key", text=stored.text, record=record, lifetime=DAY)
    assert [] == await found(harness)


async def test_what_stands_under_a_key_is_judged_as_it_was_read(harness: Harness) -> None:
    task, other = await submit(harness, idempotency_key="key"), await submit(harness)
    await put_under(harness, "key", task_id=other.task_id)
    fact = await the_fact(harness, TaskFact, task_id=task.task_id)
    await put_under(harness, "key", task_id=TaskId("f" * 32))

    (now_read,) = await again(harness, fact)

    assert isinstance(now_read, TaskFact)
    assert now_read.key in {None, await the_fact(harness, KeyFact, key="key")}


async def test_a_key_of_something_unreadable_names_nothing(harness: Harness) -> None:
    await harness.garble_key(QUEUE, key="key")

    assert (await the_fact(harness, KeyFact, key="key")).named is None
    assert [Kind.KEY] == await kinds(harness)


async def test_a_letter_is_removed_only_while_its_task_is_as_it_was(harness: Harness) -> None:
    task = await bring_to(harness, TaskStatus.DEAD_LETTERED)
    letter, examiner = task.dlq_entry_id or EntryId("0-1"), harness.backend.examiner

    assert not await examiner.remove_letter(letter, task_id=task.task_id, version=Version("another"))
    assert await examiner.remove_letter(letter, task_id=task.task_id, version=task.version)
    assert not await examiner.remove_letter(letter, task_id=task.task_id, version=task.version)


async def test_a_name_of_a_queue_is_struck_once(harness: Harness) -> None:
    await harness.backend.queues.register(QueueName("other"))

    assert await harness.backend.examiner.strike("other")
    assert not await harness.backend.examiner.strike("other")
    assert QueueName("other") not in await harness.backend.queues.names()


async def test_what_is_not_wrong_is_not_mended(harness: Harness) -> None:
    task = await run(harness)
    examiner = harness.backend.examiner
    assert task.receipt is not None

    assert not await examiner.offer(task.receipt)
    assert not await examiner.introduce(WorkerId("worker-00000000"))


async def test_an_entry_that_is_offered_is_taken_by_the_next_who_reaps(harness: Harness) -> None:
    task = await submit(harness)
    receipt = (await take_one(harness, task)).receipt
    await harness.disown(task.task_id)
    assert [Kind.ABANDONED] == await kinds(harness)

    assert await harness.backend.examiner.offer(receipt)

    assert [] == await found(harness)
    (delivery,) = await take(harness, reap_idle=VISIBILITY)
    assert receipt == delivery.receipt


async def test_an_entry_that_is_gone_is_not_offered(harness: Harness) -> None:
    task = await submit(harness)
    receipt = (await take_one(harness, task)).receipt
    await harness.orphan(task.task_id)

    assert not await harness.backend.examiner.offer(receipt)
    assert [] == list(await take(harness, reap_idle=VISIBILITY))


async def test_nobody_is_told_of_a_task_that_is_not_stored(harness: Harness) -> None:
    ghost = TaskFact(task_id=TaskId("f" * 32), record=Record(fault="spoiled"))

    assert [None] == list(await again(harness, ghost))
    assert [] == await found(harness)
    await harness.advance(seconds(1))
