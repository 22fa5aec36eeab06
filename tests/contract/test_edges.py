"""Limits that several sources share, moments that are neither before nor after, and what comes first in a change."""

from datetime import timedelta
from itertools import count

import pytest

from dtq.domain.admission import BrokerLimits
from dtq.domain.idempotency import record_of
from dtq.ports.answers import Applied, Broken, Full
from tests.contract.harness import Harness
from tests.contract.kinds import KINDS, prepared
from tests.contract.recording import recording
from tests.contract.settling import settle
from tests.contract.steps import (
    PEER,
    VISIBILITY,
    claim_due,
    create,
    key_record,
    now,
    seconds,
    stored,
    submit,
    take,
    version_of,
    write,
)
from tests.factories import QUEUE, WORKER, an_admission

INSTANT = timedelta(milliseconds=1)


@pytest.mark.parametrize("limit", range(10))
async def test_what_is_held_abandoned_and_fresh_shares_one_limit(harness: Harness, limit: int) -> None:
    for _ in range(3):
        await submit(harness)
    abandoned = [one.receipt for one in await take(harness, worker=PEER)]
    await harness.advance(VISIBILITY)
    for _ in range(3):
        await submit(harness)
    held = [one.receipt for one in await take(harness)]
    fresh = [await submit(harness) for _ in range(3)]

    taken = await take(harness, limit=limit, reap_idle=VISIBILITY, held=held)

    expected = [*held, *abandoned, *(task.receipt for task in fresh)]
    assert expected[:limit] == [one.receipt for one in taken]
    owned = await harness.backend.broker.owned(QUEUE, worker=WORKER)
    assert {*held, *expected[:limit]} == set(owned)


async def test_a_claim_is_stale_only_after_the_moment(harness: Harness) -> None:
    await submit(harness, delay=seconds(1))
    await harness.advance(seconds(1))
    claimed_at = now(harness)
    assert await claim_due(harness, at=claimed_at)
    broker = harness.backend.broker

    at_once = await broker.return_stale(claimed_before=claimed_at, now=claimed_at, limit=100)
    later = await broker.return_stale(claimed_before=claimed_at + INSTANT, now=claimed_at, limit=100)

    assert (0, 1) == (at_once, later)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_change_that_stops_before_it_is_stored_is_not_announced(harness: Harness, kind: str) -> None:
    for writes in count():
        change = await prepared(harness, kind, key=f"key-{writes}")
        await harness.stop_after(writes)
        async with recording(harness) as record:
            answer = await write(harness, change)
            told = await record.types(change.after.task_id)
            version = version_of(await harness.backend.broker.load(change.after.task_id))
        if isinstance(answer, Applied):
            # whoever comes next gives a lifetime to what stopped before it had one
            await settle(harness)
            return

        assert isinstance(answer, Broken)
        assert [] == told or version == change.after.version


@pytest.mark.parametrize("kind", ["succeed", "bury", "fail", "cancel_queued", "expire_at_start", "requeue"])
async def test_a_change_that_stops_once_it_is_stored_has_its_idempotency_record(harness: Harness, kind: str) -> None:
    for writes in count():
        key = f"key-{writes}"
        change = await prepared(harness, kind, key=key)
        await harness.stop_after(writes)
        answer = await write(harness, change)
        if isinstance(answer, Applied):
            return

        assert isinstance(answer, Broken)
        if change.after.version == (await stored(harness, change.after.task_id)).version:
            assert record_of(change) == await key_record(harness, key)


async def test_what_is_on_loan_counts_for_the_limit_of_the_schedule(harness: Harness) -> None:
    await submit(harness, delay=seconds(1))
    await harness.advance(seconds(1))
    assert await claim_due(harness)

    answer = await create(harness, an_admission(now=now(harness), delay=seconds(1)), limits=BrokerLimits(scheduled=1))

    assert Full(reason="schedule_full", value=1, limit=1) == answer
