"""Examiner: dead letters that the records of their tasks do not name any more."""

from dtq.domain.change import Change
from dtq.domain.facts import LetterFact, TaskFact
from dtq.domain.findings import Kind
from dtq.domain.lifecycle import name_again, requeue
from dtq.domain.status import TaskStatus
from dtq.domain.task import EntryId, Task
from tests.contract.examining import again, found, kinds, read, the_fact
from tests.contract.harness import Harness
from tests.contract.steps import bring_to, make, now, stored
from tests.factories import OPERATOR, a_token, an_audit_entry


async def unnamed(harness: Harness) -> Task:
    """Have a task whose record does not name its dead letter, among others; return it as it was before."""
    await bring_to(harness, TaskStatus.DEAD_LETTERED)
    task = await bring_to(harness, TaskStatus.DEAD_LETTERED, payload='{"n":1}')
    await bring_to(harness, TaskStatus.DEAD_LETTERED)
    await harness.unname(task.task_id)
    return task


async def letter_of(harness: Harness, task: Task) -> EntryId | None:
    (fact,) = await again(harness, await the_fact(harness, TaskFact, task_id=task.task_id))
    assert isinstance(fact, TaskFact)
    return fact.letter


async def letters(harness: Harness) -> set[EntryId]:
    return {one.entry_id for one in await read(harness) if isinstance(one, LetterFact)}


async def test_the_letter_that_names_a_task_is_named_by_it_again(harness: Harness) -> None:
    task = await unnamed(harness)
    before = await letters(harness)
    (finding,) = await found(harness)
    assert (Kind.LETTER_MISSING, task.task_id) == (finding.kind, finding.task_id)
    assert task.dlq_entry_id == await letter_of(harness, task)
    assert isinstance(finding.fact, TaskFact)
    assert [finding.fact] == list(await again(harness, finding.fact))

    spoiled, letter = await stored(harness, task.task_id), task.dlq_entry_id or EntryId("0-1")
    change = name_again(spoiled, letter=letter, now=now(harness), token=a_token(), audit=an_audit_entry())
    await make(harness, change)

    assert ([], before) == (await found(harness), await letters(harness))
    assert (letter, task.payload) == (
        (await stored(harness, task.task_id)).dlq_entry_id,
        (await stored(harness, task.task_id)).payload,
    )
    revived = requeue(await stored(harness, task.task_id), now=now(harness), token=a_token(), by=OPERATOR)
    assert isinstance(revived, Change)
    await make(harness, revived)
    assert before - {letter} == await letters(harness)


async def test_where_no_letter_names_a_task_none_is_its_own(harness: Harness) -> None:
    task = await bring_to(harness, TaskStatus.DEAD_LETTERED)
    await bring_to(harness, TaskStatus.DEAD_LETTERED)
    await harness.orphan(task.task_id)
    await harness.unname(task.task_id)

    assert await letter_of(harness, task) is None
    assert [Kind.LETTER_MISSING] == await kinds(harness)


async def test_a_letter_that_is_gone_is_no_tasks_own_any_more(harness: Harness) -> None:
    task = await unnamed(harness)
    (finding,) = await found(harness)
    assert isinstance(finding.fact, TaskFact)
    letter = finding.fact.letter or EntryId("0-1")
    version = (await stored(harness, task.task_id)).version
    assert await harness.backend.examiner.remove_letter(letter, task_id=task.task_id, version=version)

    (fact,) = await again(harness, finding.fact)

    assert isinstance(fact, TaskFact)
    assert fact.letter is None
