"""DeadLetters: one test for each sentence of its docstrings."""

from typing import Final

import pytest

from dtq.domain import lifecycle
from dtq.domain.change import Change
from dtq.domain.entry import dead_letter_fields
from dtq.domain.status import Place, TaskStatus
from dtq.domain.task import Task, TaskId
from dtq.ports.answers import Broken
from dtq.ports.backend import BackendOptions
from tests.contract.harness import Harness, OpenHarness
from tests.contract.steps import bare, bring_to, commit, decide_finish, make, now, seconds, stored, take
from tests.factories import OPERATOR, QUEUE, WORKER, a_fault, a_task_id, a_token, an_audit_entry

DEAD = TaskStatus.DEAD_LETTERED
NODE: Final = 100
"""By how many entries a stream may outgrow an approximate bound."""


async def _requeued(harness: Harness, task: Task) -> Task:
    return await make(harness, lifecycle.requeue(task, now=now(harness), token=a_token(), by=OPERATOR))


async def _bury_half_way(harness: Harness, task: Task) -> None:
    """Write the dead letter and stop before the record names it."""
    await harness.stop_after(1)
    change = decide_finish(harness, task, a_fault(retryable=False))
    assert isinstance(change, Change)
    assert isinstance(await commit(harness, change), Broken)


async def test_a_dead_letter_is_found_by_its_task(harness: Harness) -> None:
    await bring_to(harness, DEAD)
    task = await bring_to(harness, DEAD, payload='{"deep": [1]}', idempotency_key="k")
    await bring_to(harness, DEAD)

    letter = await harness.backend.dead_letters.get(task.task_id)

    assert letter is not None
    assert (task, task.dlq_entry_id) == (letter.task, letter.entry_id)
    assert dead_letter_fields(task) | {"payload": '{"deep": [1]}'} == dict(letter.fields)


@pytest.mark.parametrize("status", [status for status in TaskStatus if status is not DEAD])
async def test_no_other_task_has_a_dead_letter(harness: Harness, status: TaskStatus) -> None:
    task = await bring_to(harness, status)

    assert await harness.backend.dead_letters.get(task.task_id) is None
    assert 0 == await harness.backend.dead_letters.count()


async def test_an_unknown_task_has_no_dead_letter(harness: Harness) -> None:
    await bring_to(harness, DEAD)

    assert await harness.backend.dead_letters.get(a_task_id()) is None
    assert await harness.backend.dead_letters.get(TaskId("")) is None


async def test_a_dead_letter_whose_record_is_gone_is_rebuilt_from_its_fields(harness: Harness) -> None:
    task = await bring_to(harness, DEAD, payload='{"kept": []}', idempotency_key="k", max_attempts=4)
    await harness.evict(task.task_id)

    letter = await harness.backend.dead_letters.get(task.task_id)

    assert letter is not None
    assert letter.task is not None
    assert not letter.task.is_stored
    rebuilt = letter.task
    assert (DEAD, '{"kept": []}', "k", 4) == (
        rebuilt.status,
        rebuilt.payload,
        rebuilt.idempotency_key,
        rebuilt.max_attempts,
    )
    assert (task.failure, task.attempt, task.dlq_entry_id) == (rebuilt.failure, rebuilt.attempt, rebuilt.dlq_entry_id)


async def test_a_malformed_dead_letter_has_no_task(harness: Harness) -> None:
    await harness.forge(QUEUE, priority=1, fields={"what": "is this"})
    (delivery,) = await take(harness)
    await harness.backend.broker.bury(delivery, worker=WORKER, at=now(harness))

    (letter,) = await harness.backend.dead_letters.recent(limit=9)

    assert letter.task is None


async def test_a_requeued_task_has_no_dead_letter(harness: Harness) -> None:
    task = await _requeued(harness, await bring_to(harness, DEAD))

    assert await harness.backend.dead_letters.get(task.task_id) is None
    assert [] == list(await harness.backend.dead_letters.recent(limit=9))


async def test_a_letter_that_the_record_does_not_name_does_not_count(harness: Harness) -> None:
    task = await bring_to(harness, TaskStatus.RUNNING)
    await _bury_half_way(harness, task)
    assert {task.task_id} == (await harness.census())[Place.DEAD]

    assert await harness.backend.dead_letters.get(task.task_id) is None
    assert [] == list(await harness.backend.dead_letters.recent(limit=9))


async def test_a_discarded_letter_is_gone_and_its_record_says_so(harness: Harness) -> None:
    task = await bring_to(harness, DEAD)

    await make(harness, lifecycle.discard(task, now=now(harness), token=a_token(), by=OPERATOR))

    after = await stored(harness, task.task_id)
    assert (DEAD, True, None) == (after.status, after.discarded, after.dlq_entry_id)
    assert await harness.backend.dead_letters.get(task.task_id) is None
    assert 0 == await harness.backend.dead_letters.count()


async def test_recent_lists_newest_first(harness: Harness) -> None:
    tasks = [await bring_to(harness, DEAD) for _ in range(3)]

    letters = await harness.backend.dead_letters.recent(limit=9)

    assert tasks[::-1] == [letter.task for letter in letters]


async def test_recent_lists_at_most_the_limit(harness: Harness) -> None:
    tasks = [await bring_to(harness, DEAD) for _ in range(3)]

    assert tasks[:0:-1] == [letter.task for letter in await harness.backend.dead_letters.recent(limit=2)]


async def test_recent_looks_past_what_does_not_count(harness: Harness) -> None:
    first = await bring_to(harness, DEAD)
    running = await bring_to(harness, TaskStatus.RUNNING)
    await _bury_half_way(harness, running)

    assert [first] == [letter.task for letter in await harness.backend.dead_letters.recent(limit=1)]


async def test_a_dead_letter_outlives_the_record_of_its_task(harness: Harness) -> None:
    task = await bring_to(harness, DEAD)
    await harness.advance(harness.options.retention.task + seconds(1))

    letter = await harness.backend.dead_letters.get(task.task_id)

    assert await harness.backend.broker.load(task.task_id) is None
    assert letter is not None
    assert letter.task is not None
    revived = await _requeued(harness, letter.task)
    assert (TaskStatus.QUEUED, 0, task.payload) == (revived.status, revived.attempt, revived.payload)


async def test_count_counts_entries(harness: Harness) -> None:
    for _ in range(3):
        await bring_to(harness, DEAD)

    assert 3 == await harness.backend.dead_letters.count()


async def test_a_purge_removes_every_letter_and_is_audited_with_their_number(harness: Harness) -> None:
    tasks = [await bring_to(harness, DEAD) for _ in range(3)]
    audit = an_audit_entry(action="dlq.purge", queue=None)

    assert 3 == await harness.backend.dead_letters.purge(audit=audit)

    (entry,) = await harness.backend.audit.recent(limit=9)
    assert ("dlq.purge", 3, audit.actor) == (entry.action, entry.count, entry.actor)
    assert 0 == await harness.backend.dead_letters.count()
    assert {DEAD} == {(await stored(harness, task.task_id)).status for task in tasks}


async def test_a_purge_of_nothing_is_audited_too(harness: Harness) -> None:
    assert 0 == await harness.backend.dead_letters.purge(audit=an_audit_entry())
    assert [0] == [entry.count for entry in await harness.backend.audit.recent(limit=9)]


async def test_after_a_purge_new_letters_come_in(harness: Harness) -> None:
    await bring_to(harness, DEAD)
    await harness.backend.dead_letters.purge(audit=an_audit_entry())

    task = await bring_to(harness, DEAD)

    assert [task] == [letter.task for letter in await harness.backend.dead_letters.recent(limit=9)]


async def test_the_stream_is_bounded_and_loses_its_oldest(open_harness: OpenHarness) -> None:
    limit = 50
    async with open_harness(options=BackendOptions(dead_letter_limit=limit)) as harness:
        tasks = [await bring_to(harness, DEAD) for _ in range(limit + NODE + 20)]

        dead_letters = harness.backend.dead_letters
        assert limit <= await dead_letters.count() <= limit + NODE
        assert await dead_letters.get(tasks[0].task_id) is None
        assert bare(tasks[0]) == bare(await stored(harness, tasks[0].task_id))
        newest = [letter.task for letter in await dead_letters.recent(limit=limit)]
        assert tasks[: -limit - 1 : -1] == newest
