"""The memory adapter frees what has expired, and a slow listener costs a bounded amount."""

import asyncio
from datetime import timedelta

from dtq.adapters.memory.channels import Channels
from dtq.adapters.memory.clock import ManualClock
from dtq.adapters.memory.expiring import Expiring
from dtq.adapters.memory.state import MAX_AUDIT, MAX_RECENT, State
from dtq.adapters.memory.streams import Stream
from dtq.domain.task import TaskId
from dtq.ports.backend import BackendOptions
from tests.contract.steps import seconds
from tests.factories import an_audit_entry


async def test_what_has_expired_is_removed_by_later_writes() -> None:
    clock = ManualClock()
    values = Expiring[int, str](clock)
    for number in range(100):
        values.put(number, "value", lifetime=seconds(5))
    await clock.advance(seconds(5))

    values.put(100, "value", lifetime=seconds(5))

    assert ([100], 1) == (list(values), values.size)


async def test_a_renewed_value_stays_and_one_that_was_put_anew_is_not_removed_early() -> None:
    clock = ManualClock()
    values = Expiring[str, int](clock)
    values.put("renewed", 1, lifetime=seconds(5))
    values.put("replaced", 1, lifetime=seconds(5))
    await clock.advance(seconds(3))
    values.renew("renewed", lifetime=seconds(5))
    values.put("replaced", 2, lifetime=seconds(3))
    await clock.advance(seconds(2))

    values.put("other", 3, lifetime=seconds(9))
    assert (1, 2) == (values.get("renewed"), values.get("replaced"))

    await clock.advance(seconds(1))
    values.put("other", 3, lifetime=seconds(9))
    assert (1, None, 2) == (values.get("renewed"), values.get("replaced"), values.size)


async def test_a_value_lives_until_its_time_is_over() -> None:
    clock = ManualClock()
    values = Expiring[str, int](clock)
    values.put("a", 1, lifetime=seconds(5))

    await clock.advance(seconds(5) - timedelta(milliseconds=1))
    assert (1, timedelta(milliseconds=1)) == (values.get("a"), values.time_left("a"))

    await clock.advance(timedelta(milliseconds=1))
    assert (None, None, False) == (values.get("a"), values.time_left("a"), values.renew("a", lifetime=seconds(5)))
    assert not values.remove("a")


async def test_a_slow_listener_loses_the_oldest_messages() -> None:
    channels = Channels[int]()
    async with channels.listen(["news"]) as heard:
        for number in range(10_003):
            channels.send("news", number)

        async with asyncio.timeout(5):
            assert 3 == await anext(heard)
    assert 0 == channels.listeners


def test_ids_of_entries_go_up_though_a_clock_goes_back() -> None:
    stream = Stream()

    ids = [stream.add({}, at_ms=at_ms) for at_ms in (1_000, 1_000, 400, 999, 1_001)]

    assert ["1000-0", "1000-1", "1000-2", "1000-3", "1001-0"] == ids


def test_of_tasks_and_deeds_the_newest_are_listed() -> None:
    state = State(ManualClock(), options=BackendOptions())

    for number in range(MAX_RECENT + 1):
        state.recent.append(TaskId(str(number)))
    for _ in range(MAX_AUDIT + 1):
        state.audit.append(an_audit_entry())

    assert (MAX_RECENT, "1", MAX_AUDIT) == (len(state.recent), state.recent[0], len(state.audit))
