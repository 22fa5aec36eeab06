"""Limits that several sources share, and moments that are neither before nor after."""

from datetime import timedelta

import pytest

from tests.contract.harness import Harness
from tests.contract.steps import PEER, VISIBILITY, claim_due, now, seconds, submit, take
from tests.factories import QUEUE, WORKER

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
