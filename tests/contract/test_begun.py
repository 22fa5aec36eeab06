"""WorkQueue.begun, and what becomes of tasks that were started unseen."""

from collections.abc import Sequence

import pytest

from dtq.domain.delivery import Claim, start_unseen
from dtq.domain.errors import OutcomeUnknown
from dtq.domain.status import TaskStatus
from dtq.ports.answers import Applied
from dtq.ports.broker import Delivery, Offers
from tests.contract.harness import Harness
from tests.contract.offering import decided, fetch, offers
from tests.contract.steps import (
    PEER,
    VISIBILITY,
    cancel,
    commit,
    decide_finish,
    make,
    now,
    run,
    seconds,
    stored,
    submit,
    take_one,
)
from tests.factories import QUEUE, WORKER, a_fault, a_lease, a_token

S = TaskStatus


async def begun(harness: Harness, offered: Offers) -> Sequence[Delivery]:
    leases = [offer.lease for offer in offered.starts]
    return await harness.backend.broker.begun(QUEUE, worker=WORKER, leases=leases)


async def test_what_was_started_unheard_is_found(harness: Harness) -> None:
    tasks = [await submit(harness, priority=priority) for priority in (9, 3)]
    offered = offers(harness, 3)
    await harness.lose_reply()

    with pytest.raises(OutcomeUnknown):
        await fetch(harness, offered)

    found = await begun(harness, offered)
    assert [decided(task, offered, at).after for at, task in enumerate(tasks)] == [one.task for one in found]
    assert [task.receipt for task in tasks] == [one.receipt for one in found]
    assert [task.task_id for task in tasks] == [one.fields["task_id"] for one in found]


async def test_only_what_is_owned_under_these_leases_is_found(harness: Harness) -> None:
    await run(harness)
    await submit(harness)
    await fetch(harness, offers(harness, 1))
    task = await submit(harness)
    mine = offers(harness, 1)
    await fetch(harness, mine)
    await submit(harness, ttl=seconds(60))
    await fetch(harness, offers(harness, 0))
    await harness.garble((await submit(harness)).task_id)
    await fetch(harness, offers(harness, 0))

    assert [task.task_id] == [one.fields["task_id"] for one in await begun(harness, mine)]
    await harness.disown(task.task_id)
    assert [] == list(await begun(harness, mine))


async def test_a_task_whose_cancellation_was_asked_for_meanwhile_is_found_as_it_is(harness: Harness) -> None:
    task, offered = await submit(harness), offers(harness, 1)
    await fetch(harness, offered)
    running = await stored(harness, task.task_id)
    asked = await cancel(harness, running)

    assert [asked] == [one.task for one in await begun(harness, offered)]


async def test_an_entry_whose_record_is_gone_is_not_found(harness: Harness) -> None:
    task, offered = await submit(harness), offers(harness, 1)
    await fetch(harness, offered)
    await harness.evict(task.task_id)

    assert [] == list(await begun(harness, offered))


async def test_what_was_started_ends_like_any_other(harness: Harness) -> None:
    task = await submit(harness, max_attempts=2)
    (delivery,) = (await fetch(harness, offers(harness, 1))).deliveries
    assert delivery.started is not None

    after = await make(harness, decide_finish(harness, delivery.started.after, a_fault()))

    assert (S.RETRYING, 1, task.task_id) == (after.status, after.attempt, after.task_id)
    assert [] == await harness.unbounded()


async def test_what_is_started_is_no_longer_a_peers_to_start(harness: Harness) -> None:
    task = await submit(harness)
    seen = await take_one(harness, task, worker=PEER)
    await harness.advance(VISIBILITY)
    await fetch(harness, offers(harness, 1), reaping=True)

    by = Claim(worker=PEER, lease=a_lease(), receipt=seen.receipt)
    late = start_unseen(task, claim=by, now=now(harness), token=a_token())
    assert late is not None
    assert not isinstance(await commit(harness, late), Applied)


async def test_a_task_that_is_cancelled_meanwhile_comes_no_more(harness: Harness) -> None:
    await cancel(harness, await submit(harness))

    assert [] == list((await fetch(harness, offers(harness, 1))).deliveries)
