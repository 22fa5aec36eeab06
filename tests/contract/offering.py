"""Fetches that offer to start what they bring, and what the domain makes of that."""

from collections.abc import Collection, Sequence
from datetime import datetime

from dtq.domain.change import Change
from dtq.domain.delivery import Claim, start_unseen
from dtq.domain.task import Receipt, Task
from dtq.ports.broker import Fetch, Offer, Offers
from tests.contract.harness import Harness
from tests.contract.steps import VISIBILITY, now
from tests.factories import QUEUE, WORKER, a_lease, a_token


def offers(harness: Harness, number: int, *, at: datetime | None = None) -> Offers:
    return Offers(at=at or now(harness), starts=[Offer(a_lease(), a_token()) for _ in range(number)])


async def fetch(
    harness: Harness,
    offered: Offers,
    *,
    limit: int = 100,
    held: Collection[Receipt] = (),
    after: Sequence[Change] = (),
    reaping: bool = False,
) -> Fetch:
    return await harness.backend.broker.fetch(
        QUEUE,
        worker=WORKER,
        limit=limit,
        reap_idle=VISIBILITY if reaping else None,
        held=held,
        after=after,
        offers=offered,
    )


def decided(task: Task, offered: Offers, number: int = 0) -> Change:
    """What the domain makes of a task and an offer."""
    assert task.receipt is not None
    offer = offered.starts[number]
    by = Claim(worker=WORKER, lease=offer.lease, receipt=task.receipt)
    change = start_unseen(task, claim=by, now=offered.at, token=offer.token)
    assert change is not None
    return change
