"""Examiner: one test for each sentence of its docstrings, and for what a doctor makes of it on every adapter."""

import pytest

from dtq.domain.change import Change
from dtq.domain.entry import entry_fields, rebuild
from dtq.domain.facts import (
    ConsumerFact,
    EntryFact,
    KeyFact,
    LetterFact,
    MemberFact,
    Record,
    TaskFact,
)
from dtq.domain.findings import Kind
from dtq.domain.lifecycle import rebury, rehome, restore
from dtq.domain.status import TaskStatus
from dtq.domain.task import Task
from tests.contract.examining import again, found, kinds, read, the_fact
from tests.contract.harness import Harness
from tests.contract.steps import (
    VISIBILITY,
    bare,
    bring_to,
    cancel,
    claim,
    make,
    now,
    run,
    stored,
    submit,
    take_one,
)
from tests.factories import QUEUE, WORKER, a_token, an_audit_entry, an_event


@pytest.mark.parametrize("status", TaskStatus)
async def test_nothing_is_wrong_with_a_task_of_any_status(harness: Harness, status: TaskStatus) -> None:
    await bring_to(harness, status, idempotency_key="key")

    assert [] == await found(harness)


async def test_nothing_is_wrong_with_a_task_on_loan_handed_back_or_requeued(harness: Harness) -> None:
    await claim(harness, await bring_to(harness, TaskStatus.PENDING))
    delivery = await take_one(harness, await submit(harness))
    await harness.backend.broker.release([delivery.receipt], worker=WORKER)

    assert [] == await found(harness)


async def test_everything_is_in_some_page(harness: Harness) -> None:
    queued, pending = await submit(harness, idempotency_key="key"), await bring_to(harness, TaskStatus.PENDING)
    dead = await bring_to(harness, TaskStatus.DEAD_LETTERED)
    surplus = await harness.duplicate(queued.task_id)
    facts = await read(harness, limit=2)

    tasks = {one.task_id: one.record.task for one in facts if isinstance(one, TaskFact)}
    assert {task.task_id: bare(task) for task in (queued, pending, dead)} == tasks
    assert {surplus} <= {one.receipt for one in facts if isinstance(one, EntryFact)}
    assert {pending.task_id} == {one.task_id for one in facts if isinstance(one, MemberFact)}
    assert {dead.dlq_entry_id} == {one.entry_id for one in facts if isinstance(one, LetterFact)}
    assert {(QUEUE, "key")} == {(one.queue, one.key) for one in facts if isinstance(one, KeyFact)}
    assert {WORKER} == {one.worker for one in facts if isinstance(one, ConsumerFact)}


async def test_pages_are_about_as_long_as_they_are_to_be(harness: Harness) -> None:
    for _ in range(30):
        await submit(harness)

    lengths = [len(page) async for page in harness.backend.examiner.read(limit=10)]

    # a task's name, its record, and what belongs to its queue are a fact each; entries come a hundred at a time
    assert max(lengths) <= 40


@pytest.mark.parametrize("status", [TaskStatus.PENDING, TaskStatus.QUEUED, TaskStatus.RUNNING, TaskStatus.RETRYING])
async def test_a_live_task_without_a_home_gets_it_again(harness: Harness, status: TaskStatus) -> None:
    task = await bring_to(harness, status)
    await harness.orphan(task.task_id)
    assert Kind.HOMELESS in await kinds(harness)

    await make(harness, rehome(task, now=now(harness), token=a_token(), audit=an_audit_entry()))

    assert [] == [kind for kind in await kinds(harness) if kind is Kind.HOMELESS]


async def test_a_record_that_cannot_be_read_tells_whether_its_task_waits_for_its_time(harness: Harness) -> None:
    pending, queued = await bring_to(harness, TaskStatus.PENDING), await submit(harness)
    for task in (pending, queued):
        await harness.garble(task.task_id)

    facts = {one.task_id: one.fact for one in await found(harness)}

    assert {pending.task_id: True, queued.task_id: False} == {
        task_id: isinstance(fact, TaskFact) and fact.scheduled for task_id, fact in facts.items()
    }


async def test_an_entry_without_a_record_is_stored_again_from_it(harness: Harness) -> None:
    task = await submit(harness, payload='{"n":1}')
    await harness.evict(task.task_id)
    (finding,) = await found(harness)
    assert Kind.ORPHAN_ENTRY is finding.kind
    assert isinstance(finding.fact, EntryFact)

    rebuilt = rebuild(finding.fact.fields, receipt=finding.fact.receipt)
    assert rebuilt is not None
    await make_restored(harness, rebuilt)

    assert task.payload == (await stored(harness, task.task_id)).payload
    assert [] == await found(harness)


async def make_restored(harness: Harness, rebuilt: Task) -> None:
    await make(harness, restore(rebuilt, now=now(harness), token=a_token(), audit=an_audit_entry()))


async def test_an_entry_of_a_cancelled_task_without_a_record_tells_so(harness: Harness) -> None:
    task = await cancel(harness, await submit(harness))
    fields = entry_fields(task) | {"payload": "{}"}
    receipt = await harness.forge(QUEUE, priority=task.priority, fields=fields)
    await harness.evict(task.task_id)

    (fact,) = await again(harness, await the_fact(harness, EntryFact, receipt=receipt))

    assert EntryFact(receipt=receipt, task_id=task.task_id, record=Record(), cancelled=True, fields=fields) == fact


async def test_a_second_entry_is_surplus(harness: Harness) -> None:
    task = await submit(harness)
    receipt = await harness.duplicate(task.task_id)

    (finding,) = await found(harness)

    assert (Kind.SURPLUS_ENTRY, task.task_id) == (finding.kind, finding.task_id)
    assert isinstance(finding.fact, EntryFact)
    assert receipt == finding.fact.receipt


async def test_a_record_that_cannot_be_read_is_told_of(harness: Harness) -> None:
    task = await submit(harness)
    await harness.garble(task.task_id)

    assert [Kind.UNREADABLE] == await kinds(harness)


async def test_an_abandoned_entry_has_its_owner_and_since_when(harness: Harness) -> None:
    task = await run(harness)
    await harness.advance(2 * VISIBILITY)

    (finding,) = await found(harness)

    assert (Kind.ABANDONED, task.task_id) == (finding.kind, finding.task_id)
    assert isinstance(finding.fact, TaskFact)
    assert (WORKER, False) == (finding.fact.owner, finding.fact.owner_lives)
    await harness.backend.broker.release([task.receipt] if task.receipt else [], worker=WORKER)
    assert [] == await found(harness)


async def test_a_paused_queue_abandons_nothing(harness: Harness) -> None:
    await run(harness)
    await harness.advance(2 * VISIBILITY)
    await harness.backend.queues.pause(QUEUE, audit=an_audit_entry(), event=an_event())

    assert [] == await found(harness)


async def test_a_running_task_whose_owner_is_forgotten_is_told_of(harness: Harness) -> None:
    await run(harness)
    await harness.lose_groups(QUEUE)

    assert Kind.ABANDONED in await kinds(harness)


async def test_a_dead_letter_that_is_gone_is_written_again(harness: Harness) -> None:
    await bring_to(harness, TaskStatus.DEAD_LETTERED)
    task = await bring_to(harness, TaskStatus.DEAD_LETTERED, payload='{"n":1}')
    await harness.orphan(task.task_id)
    assert [Kind.LETTER_MISSING] == await kinds(harness)

    await make(harness, rebury(task, now=now(harness), token=a_token(), audit=an_audit_entry()))

    letter = await harness.backend.dead_letters.get(task.task_id)
    assert letter is not None
    assert task.payload == letter.fields["payload"]
    assert [] == await found(harness)


async def test_a_dead_letter_that_stands_is_not_written_again(harness: Harness) -> None:
    task = await bring_to(harness, TaskStatus.DEAD_LETTERED)
    change = rebury(task, now=now(harness), token=a_token(), audit=an_audit_entry())
    assert isinstance(change, Change)

    await harness.backend.broker.commit([change])

    assert (1, task.version) == (
        await harness.backend.dead_letters.count(),
        (await stored(harness, task.task_id)).version,
    )


async def test_what_is_gone_is_none_when_it_is_read_again(harness: Harness) -> None:
    task, pending = await submit(harness, idempotency_key="key"), await bring_to(harness, TaskStatus.PENDING)
    dead = await bring_to(harness, TaskStatus.DEAD_LETTERED)
    facts = [
        await the_fact(harness, TaskFact, task_id=task.task_id),
        await the_fact(harness, EntryFact, receipt=await harness.duplicate(task.task_id)),
        await the_fact(harness, MemberFact, task_id=pending.task_id),
        await the_fact(harness, LetterFact, entry_id=dead.dlq_entry_id),
    ]
    assert None not in await again(harness, *facts)

    for one in (task, pending, dead):
        await harness.orphan(one.task_id)
        await harness.evict(one.task_id)
    await harness.backend.queues.drop([facts[1].receipt])

    assert [None] * 4 == list(await again(harness, *facts))


async def test_a_task_that_has_moved_is_none_when_it_is_read_again(harness: Harness) -> None:
    task = await submit(harness)
    fact = await the_fact(harness, TaskFact, task_id=task.task_id)
    await cancel(harness, task)

    assert [None] == list(await again(harness, fact))
