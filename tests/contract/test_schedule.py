"""Schedule: one test for each sentence of its docstrings."""

from datetime import timedelta

from dtq.domain import lifecycle
from dtq.domain.change import Change
from dtq.domain.status import Place, TaskStatus
from dtq.domain.task import NO_VERSION, LeaseToken, Task
from dtq.ports.answers import Conflict
from tests.contract.harness import Harness
from tests.contract.steps import (
    LEADER,
    bare,
    bring_to,
    cancel,
    claim,
    claim_due,
    commit,
    make,
    now,
    promote,
    seconds,
    submit,
)
from tests.factories import QUEUE, a_token

MINUTE = timedelta(minutes=1)


async def test_what_is_due_is_taken_earliest_first_without_payload(harness: Harness) -> None:
    late, early, middle = [await submit(harness, delay=seconds(delay)) for delay in (30, 10, 20)]
    await harness.advance(seconds(40))

    assert [bare(early), bare(middle), bare(late)] == list(await claim_due(harness))


async def test_what_is_not_due_is_not_taken(harness: Harness) -> None:
    task = await submit(harness, delay=seconds(10))

    assert [] == list(await claim_due(harness, at=task.available_at - timedelta(milliseconds=1)))
    assert [bare(task)] == list(await claim_due(harness, at=task.available_at))


async def test_at_most_the_limit_is_taken(harness: Harness) -> None:
    tasks = [await submit(harness, delay=seconds(delay)) for delay in (1, 2, 3)]
    await harness.advance(seconds(5))

    assert [bare(task) for task in tasks[:2]] == list(await claim_due(harness, limit=2))
    assert [bare(tasks[2])] == list(await claim_due(harness, limit=2))


async def test_nobody_takes_without_leading(harness: Harness) -> None:
    await submit(harness, delay=seconds(1))
    await harness.advance(seconds(2))

    taken = await harness.backend.broker.take_due(now=now(harness), leader=LEADER, limit=9)

    assert [] == list(taken)


async def test_who_leads_no_more_takes_nothing(harness: Harness) -> None:
    await submit(harness, delay=seconds(1))
    await harness.backend.leadership.acquire(LEADER, term=seconds(10))
    await harness.advance(seconds(11))
    other = LeaseToken("leader-2")
    await harness.backend.leadership.acquire(other, term=seconds(10))

    broker = harness.backend.broker
    assert [] == list(await broker.take_due(now=now(harness), leader=LEADER, limit=9))
    assert 1 == len(await broker.take_due(now=now(harness), leader=other, limit=9))


async def test_whose_term_is_over_takes_nothing_though_nobody_else_leads(harness: Harness) -> None:
    await submit(harness, delay=seconds(1))
    await harness.backend.leadership.acquire(LEADER, term=seconds(10))

    await harness.advance(seconds(11))

    assert [] == list(await harness.backend.broker.take_due(now=now(harness), leader=LEADER, limit=9))


async def test_what_is_taken_is_not_taken_again(harness: Harness) -> None:
    await submit(harness, delay=seconds(1))
    await harness.advance(seconds(2))
    await claim_due(harness)

    assert [] == list(await claim_due(harness))


async def test_what_is_taken_stays_in_the_schedule_until_it_is_committed(harness: Harness) -> None:
    task = await bring_to(harness, TaskStatus.PENDING)
    taken = await claim(harness, task)
    assert {task.task_id} == (await harness.census())[Place.SCHEDULE]

    await make(harness, lifecycle.promote(taken, now=now(harness), token=a_token()))

    census = await harness.census()
    assert (set(), {task.task_id}) == (census[Place.SCHEDULE], census[Place.READY])


async def test_an_id_whose_task_is_gone_comes_back_bare(harness: Harness) -> None:
    gone = await submit(harness, delay=seconds(1))
    there = await submit(harness, delay=seconds(2))
    await harness.evict(gone.task_id)
    await harness.advance(seconds(3))

    assert [gone.task_id, bare(there)] == list(await claim_due(harness))


async def test_an_id_whose_record_cannot_be_read_comes_back_bare_and_is_kept(harness: Harness) -> None:
    garbled, there = [await submit(harness, delay=seconds(delay)) for delay in (1, 2)]
    await harness.garble(garbled.task_id)
    await harness.advance(seconds(3))

    assert [garbled.task_id, bare(there)] == list(await claim_due(harness))
    assert not await harness.backend.broker.forget(garbled.task_id, version=NO_VERSION)
    assert garbled.task_id in (await harness.census())[Place.SCHEDULE]


async def test_next_due_is_the_earliest(harness: Harness) -> None:
    await submit(harness, delay=seconds(50))
    early = await submit(harness, delay=seconds(5))

    assert early.available_at == await harness.backend.broker.next_due()


async def test_next_due_is_none_where_nothing_is_scheduled(harness: Harness) -> None:
    await submit(harness)

    assert await harness.backend.broker.next_due() is None


async def test_next_due_is_none_where_all_is_taken(harness: Harness) -> None:
    await claim(harness, await bring_to(harness, TaskStatus.PENDING))

    assert await harness.backend.broker.next_due() is None


async def test_a_retry_is_due_when_its_delay_is_over(harness: Harness) -> None:
    task = await bring_to(harness, TaskStatus.RETRYING)

    assert task.retry_delay == seconds(1)
    assert task.finished_at is not None
    assert task.finished_at + seconds(1) == task.available_at
    assert task.available_at == await harness.backend.broker.next_due()


async def test_an_id_is_forgotten_if_its_task_is_of_that_version(harness: Harness) -> None:
    task = await bring_to(harness, TaskStatus.PENDING)
    broker = harness.backend.broker

    assert not await broker.forget(task.task_id, version=a_token())
    assert {task.task_id} == (await harness.census())[Place.SCHEDULE]

    assert await broker.forget(task.task_id, version=task.version)
    assert set() == (await harness.census())[Place.SCHEDULE]


async def test_an_id_is_forgotten_from_the_claims_too(harness: Harness) -> None:
    task = await claim(harness, await bring_to(harness, TaskStatus.PENDING))

    assert await harness.backend.broker.forget(task.task_id, version=task.version)
    assert set() == (await harness.census())[Place.SCHEDULE]


async def test_an_id_without_a_task_is_forgotten_by_the_empty_version(harness: Harness) -> None:
    task = await bring_to(harness, TaskStatus.PENDING)
    broker = harness.backend.broker

    assert not await broker.forget(task.task_id, version=NO_VERSION)
    await harness.evict(task.task_id)
    assert not await broker.forget(task.task_id, version=task.version)
    assert await broker.forget(task.task_id, version=NO_VERSION)
    assert set() == (await harness.census())[Place.SCHEDULE]


async def test_forgetting_changes_no_task(harness: Harness) -> None:
    task = await bring_to(harness, TaskStatus.PENDING)

    await harness.backend.broker.forget(task.task_id, version=task.version)

    assert task == await harness.backend.broker.load(task.task_id)


async def test_stale_claims_come_back_as_due_now(harness: Harness) -> None:
    task = await claim(harness, await bring_to(harness, TaskStatus.PENDING))
    claimed_at = now(harness)
    await harness.advance(MINUTE)
    moment = now(harness)

    returned = await harness.backend.broker.return_stale(claimed_before=claimed_at + seconds(1), now=moment, limit=9)

    assert 1 == returned
    assert moment == await harness.backend.broker.next_due()
    assert [task] == list(await claim_due(harness))


async def test_claims_that_are_not_stale_stay(harness: Harness) -> None:
    task = await claim(harness, await bring_to(harness, TaskStatus.PENDING))

    returned = await harness.backend.broker.return_stale(
        claimed_before=now(harness) - MINUTE, now=now(harness), limit=9
    )

    assert 0 == returned
    assert [] == list(await claim_due(harness))
    assert {task.task_id} == (await harness.census())[Place.SCHEDULE]


async def test_at_most_the_limit_comes_back(harness: Harness) -> None:
    for _ in range(3):
        await submit(harness, delay=seconds(1))
    await harness.advance(seconds(2))
    await claim_due(harness)
    await harness.advance(MINUTE)

    broker = harness.backend.broker
    counts = [await broker.return_stale(claimed_before=now(harness), now=now(harness), limit=2) for _ in range(3)]

    assert [2, 1, 0] == counts


async def test_a_cancel_between_taking_and_promoting_wins(harness: Harness) -> None:
    task = await claim(harness, await bring_to(harness, TaskStatus.PENDING))
    promotion = lifecycle.promote(task, now=now(harness), token=a_token())
    assert isinstance(promotion, Change)
    cancelled = await cancel(harness, task)

    assert Conflict(bare(cancelled)) == await commit(harness, promotion)
    assert not any((await harness.census()).values())


async def test_of_two_leaders_one_promotes(harness: Harness) -> None:
    task = await claim(harness, await bring_to(harness, TaskStatus.PENDING))
    both = [lifecycle.promote(task, now=now(harness), token=a_token()) for _ in range(2)]

    answers = await harness.backend.broker.commit([one for one in both if isinstance(one, Change)])

    assert isinstance(answers[1], Conflict)
    assert 1 == (await harness.backend.queues.stats(QUEUE)).depth


async def test_the_count_of_a_queues_scheduled_tasks_follows_every_step(harness: Harness) -> None:
    async def counted() -> int:
        return (await harness.backend.queues.stats(QUEUE)).retry_scheduled

    first = await bring_to(harness, TaskStatus.PENDING)
    second = await bring_to(harness, TaskStatus.RETRYING)
    assert 2 == await counted()

    assert isinstance(await promote(harness, second), Task)
    assert 1 == await counted()

    await cancel(harness, first)
    assert 0 == await counted()
