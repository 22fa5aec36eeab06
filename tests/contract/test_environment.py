"""Clock and Server of every adapter; time, ids and chance of the system."""

import asyncio
from datetime import UTC, timedelta

import pytest

from dtq.adapters.memory import connect
from dtq.adapters.system import SystemChance, SystemClock, UuidIds
from dtq.domain.admission import TASK_ID_PATTERN
from dtq.ports.backend import BackendOptions
from dtq.ports.environment import Clock
from tests.contract.harness import Harness
from tests.contract.steps import LIMITS, seconds, submit
from tests.factories import an_admission

MOMENT = timedelta(milliseconds=20)


@pytest.fixture(params=["harness", "system"])
def clock(request: pytest.FixtureRequest, harness: Harness) -> Clock:
    return harness.backend.clock if request.param == "harness" else SystemClock()


async def test_now_is_utc_in_whole_milliseconds(clock: Clock) -> None:
    moment = clock.now()

    assert (UTC, 0) == (moment.tzinfo, moment.microsecond % 1000)


async def test_time_never_goes_back(clock: Clock) -> None:
    readings = [clock.monotonic() for _ in range(100)]

    assert sorted(readings) == readings


async def test_time_that_passes_is_measured(harness: Harness) -> None:
    clock = harness.backend.clock
    moment, reading = clock.now(), clock.monotonic()

    await harness.advance(seconds(90))

    assert seconds(90) <= clock.now() - moment < seconds(100)
    assert reading <= clock.monotonic()


async def test_sleep_ends_when_its_time_has_passed(clock: Clock, harness: Harness) -> None:
    sleeping = asyncio.create_task(clock.sleep(MOMENT))

    await harness.advance(MOMENT)

    await asyncio.wait_for(sleeping, 10)


async def test_sleeping_for_no_time_returns(clock: Clock) -> None:
    await asyncio.wait_for(clock.sleep(timedelta()), 10)


async def test_a_call_is_made_later(clock: Clock, harness: Harness) -> None:
    called = asyncio.Event()
    clock.call_later(MOMENT, called.set)
    assert not called.is_set()

    await harness.advance(MOMENT)

    await asyncio.wait_for(called.wait(), 10)


async def test_a_cancelled_call_is_never_made(clock: Clock, harness: Harness) -> None:
    calls: list[str] = []
    called = asyncio.Event()
    cancelled = clock.call_later(MOMENT, lambda: calls.append("cancelled"))
    clock.call_later(2 * MOMENT, called.set)

    cancelled.cancel()
    await harness.advance(2 * MOMENT)
    await asyncio.wait_for(called.wait(), 10)

    assert [] == calls


async def test_a_server_that_is_suitable_has_no_problems(harness: Harness) -> None:
    facts = await harness.backend.server.inspect()

    assert () == facts.problems
    assert facts.description
    assert facts.uptime >= timedelta()
    await harness.backend.server.prepare()


async def test_preparing_leaves_nothing_behind(harness: Harness) -> None:
    await harness.backend.server.prepare()
    await harness.backend.server.prepare()

    assert [] == list(await harness.backend.queues.names())
    assert not any((await harness.census()).values())
    assert [] == list(await harness.backend.audit.recent(limit=9))
    assert [] == list(await harness.backend.workers.known())


async def test_closing_is_repeatable(harness: Harness) -> None:
    await harness.backend.server.close()
    await harness.backend.server.close()


async def test_a_sibling_stands_on_the_same_broker(harness: Harness) -> None:
    sibling = (harness.backend.sibling or (lambda: harness.backend))()
    task = await submit(harness)

    assert task == await sibling.broker.load(task.task_id)
    await sibling.server.close()


async def test_every_connection_to_memory_is_a_broker_of_its_own() -> None:
    first, second = (connect("memory://", options=BackendOptions()) for _ in range(2))
    admission = an_admission(now=first.clock.now())

    await first.broker.create([admission], limits=LIMITS)

    assert await first.broker.load(admission.change.after.task_id) is not None
    assert await second.broker.load(admission.change.after.task_id) is None
    assert (None, None) == (first.sibling, second.sibling)


def test_ids_are_new_each_time_and_of_their_form() -> None:
    ids = UuidIds()
    tasks = {ids.task() for _ in range(1_000)}

    assert 1_000 == len(tasks)
    assert all(TASK_ID_PATTERN.fullmatch(task_id) for task_id in tasks)
    assert all(len(text) == 32 and int(text, 16) for text in (ids.token(), ids.lease()))
    prefix, _, name = ids.worker().partition("-")
    assert ("worker", 8) == (prefix, len(name))
    assert int(name, 16) >= 0


def test_chance_stays_within_its_bounds() -> None:
    chance = SystemChance()
    drawn = [chance.uniform(-0.2, 0.2) for _ in range(1_000)]

    assert all(-0.2 <= number <= 0.2 for number in drawn)
    assert len(set(drawn)) > 900
