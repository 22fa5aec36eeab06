"""WorkQueue.fetch, of tasks that it starts unseen; one test for each sentence."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import pytest

from dtq.domain.change import Change
from dtq.domain.lifecycle import promote, requeue
from dtq.domain.retention import LIVING, Retention, task_lifetime
from dtq.domain.status import Place, TaskStatus
from dtq.domain.task import Task
from dtq.ports.answers import Already, Applied
from dtq.ports.backend import BackendOptions
from tests.contract.harness import Harness, OpenHarness
from tests.contract.offering import decided, fetch, offers
from tests.contract.recording import recording
from tests.contract.steps import (
    PEER,
    VISIBILITY,
    bring_to,
    cancel,
    claim,
    commit,
    decide_finish,
    make,
    now,
    only,
    run,
    seconds,
    stored,
    submit,
    take,
)
from tests.factories import OPERATOR, QUEUE, a_success, a_token, an_audit_entry, an_event

S = TaskStatus
PLAIN: Final[Sequence[dict[str, Any]]] = [
    {},
    {"priority": 9, "max_attempts": 1, "timeout": seconds(3600)},
    {"timeout": seconds(0.001), "task_type": "a.b:c-d_E9"},
    {"metadata": '{"note":"überall"}', "payload": '{"text":"é"}'},
]


@pytest.mark.parametrize("spec", PLAIN)
async def test_what_waits_for_its_first_start_is_started(harness: Harness, spec: dict[str, Any]) -> None:
    task, offered = await submit(harness, **spec), offers(harness, 1)

    (delivery,) = (await fetch(harness, offered)).deliveries

    change = decided(task, offered)
    assert (task, change) == (delivery.task, delivery.started)
    assert change.after == await stored(harness, task.task_id)
    assert {task.task_id} == (await harness.census())[Place.HELD]


@pytest.mark.parametrize("spec", PLAIN)
async def test_it_is_told_of_as_by_a_commit(harness: Harness, spec: dict[str, Any]) -> None:
    task, offered = await submit(harness, **spec), offers(harness, 1)

    async with recording(harness) as record:
        await fetch(harness, offered)

        assert [decided(task, offered).event] == await record.heard()


async def test_it_lives_as_long_as_by_a_commit(open_harness: OpenHarness) -> None:
    short = Retention(task=LIVING.task, result=seconds(1), idempotency=LIVING.idempotency)
    async with open_harness(options=BackendOptions(retention=short)) as harness:
        task, offered = await submit(harness, timeout=seconds(3600)), offers(harness, 1)
        await fetch(harness, offered)
        lifetime = task_lifetime(decided(task, offered).after, at=offered.at, retention=short)

        await harness.advance(lifetime - seconds(5))
        assert await harness.backend.broker.load(task.task_id) is not None
        await harness.advance(seconds(10))
        assert await harness.backend.broker.load(task.task_id) is None


async def test_its_token_is_remembered_beside_those_before(harness: Harness) -> None:
    claimed = await claim(harness, await submit(harness, delay=seconds(5)))
    promotion = promote(claimed, now=now(harness), token=a_token())
    assert isinstance(promotion, Change)
    task, offered = await make(harness, promotion), offers(harness, 1)
    await fetch(harness, offered)

    assert [Already, Already] == [type(await commit(harness, change)) for change in (promotion, decided(task, offered))]


async def test_offers_are_taken_in_their_order_by_the_tasks_in_theirs(harness: Harness) -> None:
    low, high = await submit(harness, priority=1), [await submit(harness, priority=8) for _ in range(2)]
    offered = offers(harness, 5)

    fetched = await fetch(harness, offered)

    tasks = [*high, low]
    assert [decided(task, offered, at) for at, task in enumerate(tasks)] == [one.started for one in fetched.deliveries]


async def test_what_no_offer_is_left_for_comes_as_it_is(harness: Harness) -> None:
    tasks = [await submit(harness) for _ in range(3)]
    offered = offers(harness, 2)

    fetched = await fetch(harness, offered)

    assert [decided(task, offered, at) for at, task in enumerate(tasks[:2])] + [None] == [
        one.started for one in fetched.deliveries
    ]
    assert tasks[2] == await stored(harness, tasks[2].task_id) == fetched.deliveries[2].task


async def test_held_entries_are_started_too(harness: Harness) -> None:
    task, offered = await submit(harness), offers(harness, 1)
    await take(harness)
    assert task.receipt is not None

    fetched = await fetch(harness, offered, held=[task.receipt])

    assert [decided(task, offered)] == [one.started for one in fetched.deliveries]


async def test_what_was_read_and_left_by_a_peer_is_started_too(harness: Harness) -> None:
    task = await submit(harness)
    await take(harness, worker=PEER)
    await harness.advance(VISIBILITY)
    offered = offers(harness, 1)

    fetched = await fetch(harness, offered, reaping=True)

    assert [decided(task, offered)] == [one.started for one in fetched.deliveries]


async def test_what_an_end_makes_room_for_is_started_too(harness: Harness) -> None:
    running, task = await run(harness), await submit(harness)
    change, offered = decide_finish(harness, running, a_success()), offers(harness, 1)
    assert isinstance(change, Change)

    fetched = await fetch(harness, offered, limit=0, after=[change])

    assert [Applied] == [type(answer) for answer in fetched.answers]
    assert [decided(task, offered)] == [one.started for one in fetched.deliveries]


async def expiring(harness: Harness) -> Task:
    return await submit(harness, ttl=seconds(60))


async def keyed(harness: Harness) -> Task:
    return await submit(harness, idempotency_key="key-1")


async def retried(harness: Harness) -> Task:
    claimed = await claim(harness, await bring_to(harness, S.RETRYING, max_attempts=3))
    return await make(harness, promote(claimed, now=now(harness), token=a_token()))


async def lost_by_its_worker(harness: Harness) -> Task:
    return await run(harness, worker=PEER)


async def requeued(harness: Harness) -> Task:
    dead = await bring_to(harness, S.DEAD_LETTERED)
    return await make(harness, requeue(dead, now=now(harness), token=a_token(), by=OPERATOR))


async def to_be_cancelled(harness: Harness) -> Task:
    task = await run(harness, worker=PEER)
    return await cancel(harness, task)


async def in_two_places(harness: Harness) -> Task:
    task = await run(harness)
    await harness.duplicate(task.task_id)
    return task


async def gone(harness: Harness) -> Task:
    task = await submit(harness)
    await harness.evict(task.task_id)
    return task


async def ended(harness: Harness) -> Task:
    task = await bring_to(harness, S.SUCCEEDED)
    await harness.duplicate(task.task_id)
    return task


OTHERS: Final[Sequence[Callable[[Harness], Awaitable[Task]]]] = [
    expiring,
    keyed,
    retried,
    lost_by_its_worker,
    to_be_cancelled,
    in_two_places,
    gone,
    ended,
]


@pytest.mark.parametrize("other", OTHERS)
async def test_what_more_is_to_be_decided_of_comes_as_it_is(
    harness: Harness, other: Callable[[Harness], Awaitable[Task]]
) -> None:
    task = await other(harness)
    await harness.advance(VISIBILITY)
    before, offered = await harness.backend.broker.load(task.task_id), offers(harness, 1)

    async with recording(harness) as record:
        deliveries = (await fetch(harness, offered, reaping=True)).deliveries
        assert [] == await record.heard()

    assert {None} == {one.started for one in deliveries}
    assert {before} == {one.task for one in deliveries if one.task is not None} | {before}
    assert before == await harness.backend.broker.load(task.task_id)


async def test_it_leaves_its_offer_to_the_next(harness: Harness) -> None:
    await expiring(harness)
    task, offered = await submit(harness), offers(harness, 1)

    fetched = await fetch(harness, offered)

    assert [None, decided(task, offered)] == [one.started for one in fetched.deliveries]


async def test_what_came_after_the_moment_of_the_offers_comes_as_it_is(harness: Harness) -> None:
    offered = offers(harness, 1)
    await harness.advance(seconds(1))
    task = await submit(harness)

    assert [None] == [one.started for one in (await fetch(harness, offered)).deliveries]
    assert task == await stored(harness, task.task_id)


async def test_what_was_requeued_can_be_started_whichever_way(harness: Harness) -> None:
    task, offered = await requeued(harness), offers(harness, 1)

    (delivery,) = (await fetch(harness, offered)).deliveries

    assert delivery.started in {None, decided(task, offered)}
    after = task if delivery.started is None else delivery.started.after
    assert after == await stored(harness, task.task_id)


async def test_an_entry_of_nobody_and_one_that_cannot_be_read_come_as_they_are(harness: Harness) -> None:
    await harness.forge(QUEUE, priority=5, fields={"task_id": "nobody"})
    await harness.garble((await submit(harness)).task_id)
    offered = offers(harness, 2)

    fetched = await fetch(harness, offered)

    assert ([None], 1) == ([one.started for one in fetched.deliveries], len(fetched.unreadable))


async def test_an_entry_beside_the_tasks_own_starts_nothing(harness: Harness) -> None:
    task = await submit(harness)
    forged = await harness.duplicate(task.task_id)
    offered = offers(harness, 2)

    fetched = await fetch(harness, offered)

    change = decided(task, offered)
    assert {task.receipt: change, forged: None} == {one.receipt: one.started for one in fetched.deliveries}
    assert [task, change.after] == [one.task for one in fetched.deliveries]


async def test_an_entry_in_another_priority_than_its_tasks_starts_nothing(harness: Harness) -> None:
    task = await submit(harness, priority=3)
    own = only(await take(harness))
    await harness.forge(QUEUE, priority=8, fields=own.fields)

    (delivery,) = (await fetch(harness, offers(harness, 1))).deliveries

    assert delivery.started is None
    assert task == await stored(harness, task.task_id)


async def test_a_paused_queue_starts_nothing(harness: Harness) -> None:
    task = await submit(harness)
    await harness.backend.queues.pause(QUEUE, audit=an_audit_entry(), event=an_event())

    fetched = await fetch(harness, offers(harness, 1))

    assert (True, []) == (fetched.paused, list(fetched.deliveries))
    assert task == await stored(harness, task.task_id)
