"""How long records and idempotency records live: as the domain says after each change, and never less than needed."""

from datetime import timedelta

import pytest

from dtq.domain.delivery import FailurePolicy
from dtq.domain.retention import LIVING, Retention, record_lifetime, task_lifetime
from dtq.domain.retry import RetryPolicy
from dtq.domain.status import TaskStatus
from dtq.domain.task import TaskId
from dtq.ports.backend import BackendOptions
from tests.contract.harness import Harness, OpenHarness
from tests.contract.kinds import KINDS, prepared
from tests.contract.steps import (
    bare,
    bring_to,
    decide_start,
    end,
    key_record,
    make,
    now,
    run,
    seconds,
    stored,
    submit,
    take_one,
    write,
)
from tests.factories import a_fault, a_success

SHORT = Retention(task=seconds(60), result=seconds(10), idempotency=seconds(30))
OPTIONS = BackendOptions(retention=SHORT)


async def _lives_for(harness: Harness, *, key: timedelta, record: timedelta, task_id: TaskId) -> list[bool]:
    """Look just before and just after the two moments: alive, gone, alive, gone is what should be seen."""
    seen = []
    passed = timedelta()
    for lifetime in (key, record):
        for moment in (lifetime - seconds(5), lifetime + seconds(5)):
            await harness.advance(moment - passed)
            passed = moment
            found = await key_record(harness, "k") if lifetime is key else await harness.backend.broker.load(task_id)
            seen.append(found is not None)
    return seen


@pytest.mark.parametrize("kind", KINDS)
async def test_a_change_gives_the_lifetimes_of_the_domain(open_harness: OpenHarness, kind: str) -> None:
    async with open_harness(options=OPTIONS) as harness:
        change = await prepared(harness, kind, key="k")
        await write(harness, change)

        after, at = change.after, now(harness)
        key = record_lifetime(after, at=at, retention=SHORT)
        record = task_lifetime(after, at=at, retention=SHORT)
        assert [True, False, True, False] == await _lives_for(harness, key=key, record=record, task_id=after.task_id)


async def test_a_run_longer_than_every_retention_ends_as_the_one_run_of_its_key(open_harness: OpenHarness) -> None:
    async with open_harness(options=OPTIONS) as harness:
        task = await run(harness, idempotency_key="k", timeout=timedelta(hours=1))
        await harness.advance(timedelta(minutes=50))

        assert bare(task) == bare(await stored(harness, task.task_id))
        record = await key_record(harness, "k")
        assert record is not None
        assert task.task_id == record.task_id
        ended = await end(harness, task, a_success())
        assert (TaskStatus.SUCCEEDED, 1) == (ended.status, ended.attempt)

        await harness.advance(SHORT.idempotency + seconds(5))
        assert await key_record(harness, "k") is None
        await harness.advance(SHORT.task - SHORT.idempotency)
        assert await harness.backend.broker.load(task.task_id) is None


@pytest.mark.parametrize("status", [TaskStatus.PENDING, TaskStatus.QUEUED])
async def test_a_wait_longer_than_every_retention_is_outlived(open_harness: OpenHarness, status: TaskStatus) -> None:
    async with open_harness(options=OPTIONS) as harness:
        task = await bring_to(harness, status, idempotency_key="k")
        await harness.advance(LIVING.idempotency - seconds(60))

        assert await key_record(harness, "k") is not None
        assert bare(task) == bare(await stored(harness, task.task_id))


async def test_a_retry_later_than_every_retention_is_outlived(open_harness: OpenHarness) -> None:
    policy = FailurePolicy(retry=RetryPolicy(base=timedelta(days=3), maximum=timedelta(days=3), jitter=0))
    async with open_harness(options=OPTIONS) as harness:
        task = await run(harness, idempotency_key="k", max_attempts=2)
        task = await end(harness, task, a_fault(), policy=policy)
        assert TaskStatus.RETRYING is task.status

        await harness.advance(timedelta(days=3) + LIVING.idempotency - seconds(60))

        assert await key_record(harness, "k") is not None
        assert bare(task) == bare(await stored(harness, task.task_id))


async def test_a_start_after_a_long_wait_is_the_first_attempt(open_harness: OpenHarness) -> None:
    async with open_harness(options=OPTIONS) as harness:
        task = await submit(harness, max_attempts=2)
        await harness.advance(LIVING.task - seconds(60))

        started = await make(harness, decide_start(harness, await take_one(harness, task)))

        assert (1, task.created_at) == (started.attempt, started.created_at)
