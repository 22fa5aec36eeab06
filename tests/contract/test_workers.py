"""Workers and Leadership: one test for each sentence of their docstrings."""

import asyncio
from datetime import timedelta

from dtq.domain.events import EventType
from dtq.domain.task import LeaseToken, QueueName, WorkerId
from dtq.domain.workers import WorkerStatus
from tests.contract.harness import Harness
from tests.contract.recording import recording
from tests.contract.steps import LEADER, seconds
from tests.factories import NOW, WORKER, a_heartbeat, an_event

TERM = seconds(15)
OTHER = LeaseToken("leader-2")


async def test_a_first_sign_of_life_is_stored_as_it_is(harness: Harness) -> None:
    heartbeat = a_heartbeat(
        status=WorkerStatus.BUSY,
        queue=QueueName("other"),
        active_tasks=3,
        tasks_processed=12,
        tasks_failed=2,
        tasks_retried=1,
        task_types=("a", "b.c"),
        visibility_timeout=timedelta(seconds=2.5),
    )

    assert await harness.backend.workers.announce(heartbeat, expires_in=TERM)

    assert heartbeat == await harness.backend.workers.get(WORKER)
    assert [WORKER] == list(await harness.backend.workers.known())


async def test_a_worker_may_announce_itself_again(harness: Harness) -> None:
    workers = harness.backend.workers

    assert await workers.announce(a_heartbeat(), expires_in=TERM)
    assert await workers.announce(a_heartbeat(active_tasks=2), expires_in=TERM)
    assert a_heartbeat(active_tasks=2) == await workers.get(WORKER)


async def test_another_worker_of_the_same_id_is_refused_and_nothing_written(harness: Harness) -> None:
    workers = harness.backend.workers
    await workers.announce(a_heartbeat(), expires_in=TERM)
    other = a_heartbeat(started_at=NOW + seconds(1), hostname="host-2")

    assert not await workers.announce(other, expires_in=TERM)
    assert a_heartbeat() == await workers.get(WORKER)


async def test_of_two_that_begin_under_one_id_in_one_moment_one_is_refused(harness: Harness) -> None:
    workers = harness.backend.workers
    first, second = a_heartbeat(life="first"), a_heartbeat(life="second", hostname="host-2")
    assert await workers.announce(first, expires_in=TERM)

    assert not await workers.announce(second, expires_in=TERM)
    assert not await workers.retire(second, event=an_event(type=EventType.WORKER_STOPPED))
    assert first == await workers.get(WORKER)
    assert await workers.announce(first, expires_in=TERM)


async def test_a_sign_of_life_is_refused_and_not_written_where_another_has_come(harness: Harness) -> None:
    workers = harness.backend.workers
    assert await workers.announce(a_heartbeat(), expires_in=TERM)
    await harness.advance(TERM + seconds(1))
    other = a_heartbeat(started_at=NOW + seconds(1), hostname="host-2")
    assert await workers.announce(other, expires_in=TERM)

    assert not await workers.announce(a_heartbeat(active_tasks=1), expires_in=TERM)

    assert other == await workers.get(WORKER)
    assert await workers.announce(other, expires_in=TERM)


async def test_a_refused_sign_of_life_prolongs_nothing(harness: Harness) -> None:
    workers = harness.backend.workers
    other = a_heartbeat(started_at=NOW + seconds(1))
    assert await workers.announce(other, expires_in=TERM)
    await harness.advance(TERM - seconds(2))
    assert not await workers.announce(a_heartbeat(), expires_in=TERM)

    await harness.advance(seconds(3))

    assert await workers.get(WORKER) is None
    assert await workers.announce(a_heartbeat(), expires_in=TERM)


async def test_an_id_is_free_again_when_its_worker_fell_silent(harness: Harness) -> None:
    workers = harness.backend.workers
    await workers.announce(a_heartbeat(), expires_in=TERM)
    await harness.advance(TERM + seconds(1))
    other = a_heartbeat(started_at=NOW + seconds(1))

    assert await workers.announce(other, expires_in=TERM)
    assert other == await workers.get(WORKER)


async def test_a_sign_of_life_replaces_the_last(harness: Harness) -> None:
    workers = harness.backend.workers
    await workers.announce(a_heartbeat(task_types=("a", "b"), active_tasks=1), expires_in=TERM)

    await workers.announce(a_heartbeat(), expires_in=TERM)

    assert a_heartbeat() == await workers.get(WORKER)


async def test_a_sign_of_life_is_forgotten_after_its_time(harness: Harness) -> None:
    workers = harness.backend.workers
    await workers.announce(a_heartbeat(), expires_in=TERM)

    await harness.advance(TERM - seconds(2))
    assert a_heartbeat() == await workers.get(WORKER)

    await harness.advance(seconds(3))
    assert await workers.get(WORKER) is None


async def test_every_sign_of_life_counts_anew(harness: Harness) -> None:
    workers = harness.backend.workers
    await workers.announce(a_heartbeat(), expires_in=TERM)
    await harness.advance(TERM - seconds(2))
    await workers.announce(a_heartbeat(), expires_in=TERM)
    await harness.advance(TERM - seconds(2))

    assert a_heartbeat() == await workers.get(WORKER)


async def test_announcing_runs_when_memory_is_full(harness: Harness) -> None:
    await harness.fill_memory()

    await harness.backend.workers.announce(a_heartbeat(), expires_in=TERM)

    assert a_heartbeat() == await harness.backend.workers.get(WORKER)


async def test_an_unknown_worker_has_no_sign_of_life(harness: Harness) -> None:
    assert await harness.backend.workers.get(WORKER) is None


async def test_known_workers_are_in_alphabetical_order_and_outlive_their_signs(harness: Harness) -> None:
    names = [WorkerId(f"worker-{name}") for name in "cab"]
    for name in names:
        await harness.backend.workers.announce(a_heartbeat(worker_id=name), expires_in=TERM)
    await harness.advance(2 * TERM)

    assert sorted(names) == list(await harness.backend.workers.known())


async def test_a_silent_worker_is_removed_and_told_of_once(harness: Harness) -> None:
    workers = harness.backend.workers
    await workers.announce(a_heartbeat(), expires_in=TERM)
    await harness.advance(TERM + seconds(1))
    event = an_event(type=EventType.WORKER_STALE)

    async with recording(harness) as record:
        removals = await asyncio.gather(*(workers.remove(WORKER, event=event) for _ in range(5)))

        assert 1 == sum(removals)
        assert [event] == await record.heard()
    assert [] == list(await workers.known())


async def test_a_worker_that_gives_signs_is_not_removed_as_stale(harness: Harness) -> None:
    workers = harness.backend.workers
    await workers.announce(a_heartbeat(), expires_in=TERM)

    async with recording(harness) as record:
        assert not await workers.remove(WORKER, event=an_event(type=EventType.WORKER_STALE))

        assert [] == await record.heard()
    assert [WORKER] == list(await workers.known())
    assert a_heartbeat() == await workers.get(WORKER)


async def test_a_worker_that_says_goodbye_is_forgotten_at_once(harness: Harness) -> None:
    workers = harness.backend.workers
    await workers.announce(a_heartbeat(), expires_in=TERM)
    event = an_event(type=EventType.WORKER_STOPPED)

    async with recording(harness) as record:
        assert await workers.retire(a_heartbeat(), event=event)

        assert [event] == await record.heard()
    assert ([], None) == (list(await workers.known()), await workers.get(WORKER))
    assert await workers.announce(a_heartbeat(started_at=NOW + seconds(5)), expires_in=TERM)


async def test_a_worker_that_says_goodbye_leaves_another_of_its_id_in_place(harness: Harness) -> None:
    workers = harness.backend.workers
    other = a_heartbeat(started_at=NOW + seconds(1))
    await workers.announce(other, expires_in=TERM)

    async with recording(harness) as record:
        assert not await workers.retire(a_heartbeat(), event=an_event(type=EventType.WORKER_STOPPED))

        assert [] == await record.heard()
    assert ([WORKER], other) == (list(await workers.known()), await workers.get(WORKER))


async def test_a_worker_whose_sign_has_expired_may_say_goodbye(harness: Harness) -> None:
    workers = harness.backend.workers
    await workers.announce(a_heartbeat(), expires_in=TERM)
    await harness.advance(TERM + seconds(1))

    assert await workers.retire(a_heartbeat(), event=an_event(type=EventType.WORKER_STOPPED))

    assert [] == list(await workers.known())


async def test_the_lead_is_taken_by_one(harness: Harness) -> None:
    leadership = harness.backend.leadership

    assert await leadership.acquire(LEADER, term=TERM)
    assert not await leadership.acquire(OTHER, term=TERM)


async def test_of_many_that_want_the_lead_one_gets_it(harness: Harness) -> None:
    leadership = harness.backend.leadership
    tokens = [LeaseToken(f"leader-{number}") for number in range(8)]

    answers = await asyncio.gather(*(leadership.acquire(token, term=TERM) for token in tokens))

    assert 1 == sum(answers)


async def test_the_lead_is_renewed_by_who_has_it(harness: Harness) -> None:
    leadership = harness.backend.leadership
    await leadership.acquire(LEADER, term=TERM)
    await harness.advance(TERM - seconds(2))

    assert await leadership.acquire(LEADER, term=TERM)

    await harness.advance(TERM - seconds(2))
    assert not await leadership.acquire(OTHER, term=TERM)


async def test_the_lead_ends_with_its_term(harness: Harness) -> None:
    leadership = harness.backend.leadership
    await leadership.acquire(LEADER, term=TERM)

    await harness.advance(TERM + seconds(1))

    assert await leadership.acquire(OTHER, term=TERM)
    assert not await leadership.acquire(LEADER, term=TERM)


async def test_the_lead_is_given_up_by_who_has_it(harness: Harness) -> None:
    leadership = harness.backend.leadership
    await leadership.acquire(LEADER, term=TERM)

    assert not await leadership.resign(OTHER)
    assert await leadership.resign(LEADER)
    assert not await leadership.resign(LEADER)
    assert await leadership.acquire(OTHER, term=TERM)


async def test_a_lead_that_was_lost_is_not_given_up(harness: Harness) -> None:
    leadership = harness.backend.leadership
    await leadership.acquire(LEADER, term=TERM)
    await harness.advance(TERM + seconds(1))
    await leadership.acquire(OTHER, term=TERM)

    assert not await leadership.resign(LEADER)
    assert not await leadership.acquire(LEADER, term=TERM)


async def test_the_lead_can_be_kept_when_memory_is_full(harness: Harness) -> None:
    await harness.fill_memory()

    assert await harness.backend.leadership.acquire(LEADER, term=TERM)
