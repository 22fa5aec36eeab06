"""What a client is told to wait for a full queue."""

from datetime import timedelta

import pytest

from dtq.adapters.memory import ManualClock
from dtq.application.refill import KEPT, LONGEST_S, Refill
from dtq.domain.admission import BrokerLimits
from dtq.domain.errors import QueueFull
from dtq.ports.answers import Full
from tests.application.world import World

FULL = Full(reason="queue_full", value=10, limit=10)


async def passed(clock: ManualClock, seconds: float) -> None:
    await clock.advance(timedelta(seconds=seconds))


async def test_of_a_queue_that_was_not_full_before_nothing_is_known() -> None:
    assert 1 == Refill(ManualClock()).refused(FULL, queue="mail")


async def test_the_wait_is_what_a_place_takes_to_come_free() -> None:
    clock = ManualClock()
    refill = Refill(clock)
    refill.refused(FULL, queue="mail")
    await passed(clock, 20)
    for _ in range(4):
        refill.admitted("mail")

    assert 5 == refill.refused(FULL, queue="mail")


async def test_a_queue_that_is_over_its_limit_takes_longer() -> None:
    clock = ManualClock()
    refill = Refill(clock)
    refill.refused(FULL, queue="mail")
    await passed(clock, 20)
    for _ in range(10):
        refill.admitted("mail")

    assert 8 == refill.refused(Full(reason="queue_full", value=13, limit=10), queue="mail")


async def test_where_nothing_comes_free_the_wait_grows_up_to_thirty_seconds() -> None:
    clock = ManualClock()
    refill = Refill(clock)
    waits = []
    for _ in range(5):
        waits.append(refill.refused(FULL, queue="mail"))
        await passed(clock, 10)

    assert [1, 10, 20, LONGEST_S, LONGEST_S] == waits


async def test_a_queue_that_had_room_for_a_minute_is_looked_at_anew() -> None:
    clock = ManualClock()
    refill = Refill(clock)
    refill.refused(FULL, queue="mail")
    await passed(clock, 61)

    assert 1 == refill.refused(FULL, queue="mail")


async def test_what_lies_back_counts_less() -> None:
    clock = ManualClock()
    refill = Refill(clock)
    refill.refused(FULL, queue="mail")
    for _ in range(60):
        await passed(clock, 1)
        refill.admitted("mail")
        refill.refused(FULL, queue="mail")
    assert 1 == refill.refused(FULL, queue="mail")

    for _ in range(20):
        await passed(clock, 30)
        refill.refused(FULL, queue="mail")

    assert LONGEST_S == refill.refused(FULL, queue="mail")


async def test_queues_are_watched_each_for_itself_and_common_limits_together() -> None:
    clock = ManualClock()
    refill = Refill(clock)
    crowded = Full(reason="schedule_full", value=9, limit=9)
    refill.refused(FULL, queue="mail")
    refill.refused(crowded, queue="mail")
    await passed(clock, 7)

    assert 1 == refill.refused(FULL, queue="other")
    assert 7 == refill.refused(crowded, queue="other")


async def test_no_more_queues_are_watched_than_a_bound() -> None:
    clock = ManualClock()
    refill = Refill(clock)
    refill.refused(FULL, queue="first")
    await passed(clock, 9)
    for number in range(KEPT):
        refill.refused(FULL, queue=f"queue-{number}")

    assert 1 == refill.refused(FULL, queue="first")


async def test_a_refused_submission_tells_what_a_place_takes_to_come_free(world: World) -> None:
    world.limit(BrokerLimits(queue_depth=1))
    await world.submit()
    waits = []
    for _ in range(3):
        with pytest.raises(QueueFull) as refused:
            await world.submit()
        waits.append(refused.value.retry_after_s)
        await world.advance(12)

    assert [1, 12, 24] == waits
