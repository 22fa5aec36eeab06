"""Surveyor: one test for each sentence of its docstrings."""

from datetime import timedelta

from dtq.domain.status import TaskStatus
from dtq.domain.task import QueueName, WorkerId
from dtq.ports.survey import QueueFigures, Survey
from tests.contract.harness import Harness
from tests.contract.steps import LEADER, bring_to, now, run, seconds, submit
from tests.factories import QUEUE, WORKER, a_heartbeat

OTHER = QueueName("other")
TERM = timedelta(seconds=15)


def figures(queue: QueueName, depth: int, pending: int) -> QueueFigures:
    return QueueFigures(queue=queue, depth=depth, pending=pending)


async def test_nothing_is_found_where_nothing_is(harness: Harness) -> None:
    survey = await harness.backend.surveyor.survey(limit=10)

    assert Survey(queues=[], scheduled=0, dead_letters=0, heartbeats=[]) == survey


async def test_depth_counts_what_waits_and_runs_and_pending_what_is_owned(harness: Harness) -> None:
    await bring_to(harness, TaskStatus.SUCCEEDED)
    await run(harness, priority=9)
    for priority in (9, 5, 0):
        await submit(harness, priority=priority)
    await submit(harness, queue=OTHER)

    survey = await harness.backend.surveyor.survey(limit=10)

    assert [figures(QUEUE, 4, 1), figures(OTHER, 1, 0)] == list(survey.queues)


async def test_a_queue_whose_groups_are_lost_owns_nothing(harness: Harness) -> None:
    await run(harness)
    await harness.lose_groups(QUEUE)

    survey = await harness.backend.surveyor.survey(limit=10)

    assert [figures(QUEUE, 1, 0)] == list(survey.queues)


async def test_queues_come_in_alphabetical_order_up_to_the_limit(harness: Harness) -> None:
    for name in ("b", "a-1", "c", "a"):
        await harness.backend.queues.register(QueueName(name))

    assert ["a", "a-1", "b"] == [one.queue for one in (await harness.backend.surveyor.survey(limit=3)).queues]


async def test_many_queues_are_looked_at(harness: Harness) -> None:
    for number in range(120):
        await harness.backend.queues.register(QueueName(f"q{number:03}"))
    await submit(harness, queue=QueueName("q119"))

    survey = await harness.backend.surveyor.survey(limit=500)

    assert [*[0] * 119, 1] == [one.depth for one in survey.queues]


async def test_scheduled_counts_delayed_tasks_and_retries_those_on_loan_included(harness: Harness) -> None:
    await submit(harness, delay=seconds(5))
    await submit(harness, queue=OTHER, delay=seconds(50))
    await bring_to(harness, TaskStatus.RETRYING)
    await harness.backend.leadership.acquire(LEADER, term=TERM)
    await harness.advance(seconds(6))
    assert await harness.backend.broker.take_due(now=now(harness), leader=LEADER, limit=10)

    assert 3 == (await harness.backend.surveyor.survey(limit=10)).scheduled


async def test_dead_letters_are_counted(harness: Harness) -> None:
    for _ in range(2):
        await bring_to(harness, TaskStatus.DEAD_LETTERED)

    assert 2 == (await harness.backend.surveyor.survey(limit=10)).dead_letters


async def test_heartbeats_are_those_of_announced_workers_in_the_order_of_their_ids(harness: Harness) -> None:
    second, third = WorkerId("worker-00000002"), WorkerId("worker-00000003")
    workers = harness.backend.workers
    await workers.announce(a_heartbeat(worker_id=third), expires_in=TERM)
    await harness.advance(TERM + seconds(1))
    await workers.announce(a_heartbeat(worker_id=second), expires_in=TERM)
    await workers.announce(a_heartbeat(active_tasks=2), expires_in=TERM)

    survey = await harness.backend.surveyor.survey(limit=10)

    assert [a_heartbeat(active_tasks=2), a_heartbeat(worker_id=second)] == list(survey.heartbeats)
    assert WORKER < second
