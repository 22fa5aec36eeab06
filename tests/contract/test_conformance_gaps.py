"""Sentences of the contract that no other test says on its own."""

from datetime import timedelta
from uuid import UUID

import msgspec
import pytest

from dtq.adapters.system import UuidIds
from dtq.domain import lifecycle
from dtq.domain.outcome import classify
from dtq.domain.status import TaskStatus
from tests.contract.harness import Harness
from tests.contract.steps import bring_to, claim, make, now, run, seconds, stored, submit, take, take_one
from tests.factories import a_token


def test_a_task_id_is_a_uuid4_in_hex() -> None:
    ids = [UuidIds().task() for _ in range(1_000)]

    assert [4] * 1_000 == [UUID(hex=task_id).version for task_id in ids]
    assert ids == [UUID(hex=task_id).hex for task_id in ids]
    assert sorted(ids) != ids


class _Order(msgspec.Struct):
    number: int


def test_a_validation_error_is_permanent() -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert({"number": "many"}, _Order)

    assert not classify(caught.value, retryable=()).failure.retryable


async def test_a_task_that_is_due_goes_to_the_stream_of_its_priority(harness: Harness) -> None:
    for priority in (0, 9, 4):
        task = await claim(harness, await submit(harness, delay=seconds(5), priority=priority))
        await make(harness, lifecycle.promote(task, now=now(harness), token=a_token()))

    assert [9, 4, 0] == [delivery.receipt.priority for delivery in await take(harness)]


async def test_what_was_read_is_still_there_until_its_task_has_ended(harness: Harness) -> None:
    task = await submit(harness)
    depths = [(await harness.backend.queues.stats(task.queue)).depth]
    await take_one(harness, task)
    depths.append((await harness.backend.queues.stats(task.queue)).depth)
    await run(harness)
    depths.append((await harness.backend.queues.stats(task.queue)).depth)

    assert [1, 1, 2] == depths


@pytest.mark.parametrize("status", [TaskStatus.RETRYING, TaskStatus.SUCCEEDED, TaskStatus.DEAD_LETTERED])
async def test_the_record_keeps_how_the_latest_attempt_went(harness: Harness, status: TaskStatus) -> None:
    task = await stored(harness, (await bring_to(harness, status)).task_id)

    (attempt,) = task.history
    assert (task.attempt, task.started_at, task.finished_at, task.worker_id) == (
        attempt.attempt,
        attempt.started_at,
        attempt.finished_at,
        attempt.worker_id,
    )
    assert (task.failure, task.retry_delay) == (attempt.failure, attempt.retry_delay)
    assert (task.finished_at or task.created_at) - (task.started_at or task.created_at) == task.duration
    assert (task.retry_delay == timedelta(seconds=1)) == (status is TaskStatus.RETRYING)
