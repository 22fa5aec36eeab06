"""TaskStore, but for create: one test for each sentence of its docstrings."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from dtq.domain import lifecycle
from dtq.domain.change import Change
from dtq.domain.errors import RecordUnreadable
from dtq.domain.status import TaskStatus
from dtq.domain.task import NO_VERSION, QueueName, TaskId
from dtq.ports.answers import Already, Applied, Conflict
from tests.contract.harness import Harness
from tests.contract.steps import (
    LIMITS,
    bare,
    bring_to,
    cancel,
    commit,
    decide_finish,
    decide_start,
    end,
    key_record,
    make,
    now,
    reap_one,
    run,
    seconds,
    stored,
    submit,
    take_one,
)
from tests.factories import OPERATOR, WORKER, a_success, a_task_id, a_token

SECOND = timedelta(seconds=1)
OTHER = QueueName("other")


async def test_load_returns_the_task_as_stored_with_its_payload(harness: Harness) -> None:
    payload = '{"a": [], "n": 12345678901234567890, "s": "\\u00fc\u00fc\\n"}'
    metadata = '{"who": "me", "list": []}'

    task = await submit(
        harness, payload=payload, metadata=metadata, idempotency_key="k", ttl=seconds(9), max_attempts=7
    )

    loaded = await stored(harness, task.task_id)
    assert (payload, metadata) == (loaded.payload, loaded.metadata)
    assert ("k", 7, task.created_at + seconds(9)) == (loaded.idempotency_key, loaded.max_attempts, loaded.ttl_at)


async def test_load_returns_none_where_no_task_is(harness: Harness) -> None:
    assert await harness.backend.broker.load(a_task_id()) is None


async def test_load_raises_where_the_record_cannot_be_read(harness: Harness) -> None:
    task = await submit(harness)
    await harness.garble(task.task_id)

    with pytest.raises(RecordUnreadable, match=task.task_id):
        await harness.backend.broker.load(task.task_id)


async def test_a_payload_outlives_every_step_unchanged(harness: Harness) -> None:
    payload = '{"b":1,  "a":{"x":[]}}'
    task = await end(harness, await run(harness, payload=payload), a_success())

    assert payload == (await stored(harness, task.task_id)).payload


async def test_a_change_without_payload_writes_none(harness: Harness) -> None:
    task = await submit(harness, payload='{"kept": true}')

    await make(harness, lifecycle.cancel(bare(task), now=now(harness), token=a_token(), by=OPERATOR))

    assert '{"kept": true}' == (await stored(harness, task.task_id)).payload


async def test_an_applied_change_comes_back_with_the_payload_that_it_had(harness: Harness) -> None:
    task = await submit(harness)
    with_payload = lifecycle.purge(task, now=now(harness), token=a_token())
    other = await submit(harness)
    without = lifecycle.purge(bare(other), now=now(harness), token=a_token())
    assert isinstance(with_payload, Change)
    assert isinstance(without, Change)

    first, second = await harness.backend.broker.commit([with_payload, without])

    assert isinstance(first, Applied)
    assert isinstance(second, Applied)
    assert (task.payload, None) == (first.task.payload, second.task.payload)


async def test_changes_of_one_commit_are_made_in_order(harness: Harness) -> None:
    task = await submit(harness)
    started = decide_start(harness, await take_one(harness, task))
    assert isinstance(started, Change)
    finished = decide_finish(harness, started.after, a_success())
    assert isinstance(finished, Change)

    first, second = await harness.backend.broker.commit([started, finished])

    assert isinstance(first, Applied)
    assert isinstance(second, Applied)
    assert TaskStatus.SUCCEEDED is (await stored(harness, task.task_id)).status


async def test_nothing_to_commit_is_answered_with_nothing(harness: Harness) -> None:
    assert [] == list(await harness.backend.broker.commit([]))
    assert [] == list(await harness.backend.broker.create([], limits=LIMITS))


async def test_a_change_needs_the_version_that_it_was_decided_on(harness: Harness) -> None:
    task = await submit(harness)
    late = lifecycle.cancel(task, now=now(harness), token=a_token(), by=OPERATOR)
    assert isinstance(late, Change)
    await make(harness, decide_start(harness, await take_one(harness, task)))

    answer = await commit(harness, late)

    running = await stored(harness, task.task_id)
    assert Conflict(bare(running)) == answer
    assert TaskStatus.RUNNING is running.status


async def test_a_change_of_a_task_that_is_gone_is_a_conflict(harness: Harness) -> None:
    task = await submit(harness)
    change = lifecycle.cancel(task, now=now(harness), token=a_token(), by=OPERATOR)
    assert isinstance(change, Change)
    await harness.evict(task.task_id)

    assert Conflict(None) == await commit(harness, change)
    assert await harness.backend.broker.load(task.task_id) is None


async def test_a_change_of_a_task_that_was_rebuilt_needs_that_none_is_stored(harness: Harness) -> None:
    task = await submit(harness)
    delivery = await take_one(harness, task)
    rebuilt = decide_start(harness, delivery, task=replace(task, version=NO_VERSION))
    assert isinstance(rebuilt, Change)

    assert Conflict(bare(task)) == await commit(harness, rebuilt)


async def test_a_conflict_of_one_change_leaves_the_others_alone(harness: Harness) -> None:
    first, second, third = [await submit(harness) for _ in range(3)]
    await cancel(harness, second)
    changes = [lifecycle.purge(one, now=now(harness), token=a_token()) for one in (first, second, third)]

    answers = await harness.backend.broker.commit([one for one in changes if isinstance(one, Change)])

    assert [Applied, Conflict, Applied] == [type(answer) for answer in answers]
    assert TaskStatus.CANCELLED is (await stored(harness, third.task_id)).status


@pytest.mark.parametrize(("later", "known"), [(7, True), (8, False)])
async def test_the_tokens_of_the_last_8_commits_are_known(harness: Harness, later: int, *, known: bool) -> None:
    delivery = await take_one(harness, await submit(harness, max_attempts=10))
    first = decide_start(harness, delivery)
    assert isinstance(first, Change)
    task = await make(harness, first)
    for _ in range(later):
        delivery = await reap_one(harness, task, worker=WORKER)
        task = await make(harness, decide_start(harness, delivery))

    answer = await commit(harness, first)

    assert (Already(bare(task)) if known else Conflict(bare(task))) == answer


async def test_the_record_lives_as_long_as_the_retention_after_its_last_change(harness: Harness) -> None:
    retention = harness.options.retention.task
    task = await submit(harness)
    await harness.advance(retention - SECOND)
    task = await cancel(harness, task)

    await harness.advance(retention - SECOND)
    assert bare(task) == bare(await stored(harness, task.task_id))

    await harness.advance(2 * SECOND)
    assert await harness.backend.broker.load(task.task_id) is None


async def test_the_record_of_a_delayed_task_outlives_its_delay_by_the_retention(harness: Harness) -> None:
    retention, delay = harness.options.retention.task, timedelta(days=20)
    task = await submit(harness, delay=delay)

    await harness.advance(delay + retention - SECOND)
    assert bare(task) == bare(await stored(harness, task.task_id))

    await harness.advance(2 * SECOND)
    assert await harness.backend.broker.load(task.task_id) is None


async def test_a_result_is_its_text_as_it_was(harness: Harness) -> None:
    text = '{"big": 12345678901234567890, "empty": []}'
    task = await end(harness, await run(harness), a_success(text))

    assert text == await harness.backend.broker.result(task.task_id)


@pytest.mark.parametrize("status", [status for status in TaskStatus if status is not TaskStatus.SUCCEEDED])
async def test_there_is_no_result_but_of_success(harness: Harness, status: TaskStatus) -> None:
    task = await bring_to(harness, status)

    assert await harness.backend.broker.result(task.task_id) is None


async def test_a_result_too_large_to_keep_is_none(harness: Harness) -> None:
    outcome = replace(a_success(), result=None, truncated=True)
    task = await end(harness, await run(harness), outcome)

    assert await harness.backend.broker.result(task.task_id) is None
    assert (await stored(harness, task.task_id)).result_truncated


async def test_a_result_expires_before_its_task(harness: Harness) -> None:
    task = await end(harness, await run(harness), a_success())

    await harness.advance(harness.options.retention.result - SECOND)
    assert await harness.backend.broker.result(task.task_id) is not None

    await harness.advance(2 * SECOND)
    assert await harness.backend.broker.result(task.task_id) is None
    assert TaskStatus.SUCCEEDED is (await stored(harness, task.task_id)).status


async def test_no_result_of_an_unknown_task(harness: Harness) -> None:
    assert await harness.backend.broker.result(TaskId("f" * 32)) is None


async def test_a_key_of_another_task_is_left_alone(harness: Harness) -> None:
    first = await bring_to(harness, TaskStatus.DEAD_LETTERED, idempotency_key="k")
    await harness.advance(harness.options.retention.idempotency)
    second = await submit(harness, idempotency_key="k")

    await make(harness, lifecycle.requeue(first, now=now(harness), token=a_token(), by=OPERATOR))

    record = await key_record(harness, "k")
    assert record is not None
    assert second.task_id == record.task_id
