"""Calls are repeated for a while, and given up in time."""

import asyncio
from datetime import timedelta

import pytest

from dtq.adapters.memory import ManualClock
from dtq.adapters.memory.clock import settle
from dtq.application.patience import CALL_DEADLINE, FAREWELL, Patience, Unsent
from dtq.domain.errors import (
    BrokerBehind,
    BrokerOutOfMemory,
    BrokerRefused,
    BrokerUnavailable,
    OutcomeUnknown,
    StepStopped,
)

DOWN = BrokerUnavailable("down")
LOST = OutcomeUnknown("lost")


class Flaky:
    """Raises what it was given, one by one, and then answers."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "answer"


async def outcome(clock: ManualClock, future: "asyncio.Future[str]") -> str | type[BaseException]:
    while not future.done():
        await clock.advance(timedelta(milliseconds=50))
    error = future.exception()
    return future.result() if error is None else type(error)


async def test_a_call_is_repeated_until_it_is_answered() -> None:
    clock = ManualClock()
    flaky = Flaky(DOWN, LOST, DOWN)

    assert "answer" == await outcome(clock, asyncio.ensure_future(Patience(clock).write(flaky)))
    assert 4 == flaky.calls


@pytest.mark.parametrize(
    ("errors", "expected"),
    [([DOWN] * 5, BrokerUnavailable), ([LOST] * 5, OutcomeUnknown), ([LOST, *[DOWN] * 4], OutcomeUnknown)],
)
async def test_a_write_that_may_have_been_done_is_given_up_as_unknown(
    errors: list[Exception], expected: type[Exception]
) -> None:
    clock = ManualClock()
    flaky = Flaky(*errors)

    assert expected is await outcome(clock, asyncio.ensure_future(Patience(clock).write(flaky)))
    assert 5 == flaky.calls
    assert clock.monotonic() < CALL_DEADLINE.total_seconds()


async def test_a_read_is_never_unknown() -> None:
    clock = ManualClock()

    found = await outcome(clock, asyncio.ensure_future(Patience(clock).read(Flaky(*[LOST] * 5))))

    assert BrokerUnavailable is found


@pytest.mark.parametrize("kind", [BrokerOutOfMemory, BrokerBehind, BrokerRefused, StepStopped])
async def test_what_is_full_refused_or_stopped_is_not_tried_again(kind: type[BrokerUnavailable]) -> None:
    clock = ManualClock()
    flaky = Flaky(kind("no"))

    assert kind is await outcome(clock, asyncio.ensure_future(Patience(clock).write(flaky)))
    assert 1 == flaky.calls


async def test_a_call_without_an_answer_is_canceled_at_the_deadline() -> None:
    clock = ManualClock()
    late = asyncio.Event()
    ended: list[str] = []

    async def slow() -> str:
        try:
            await late.wait()
        except asyncio.CancelledError:
            ended.append("canceled")
            raise
        return "late"

    waiting = asyncio.ensure_future(Patience(clock).write(slow))
    await clock.advance(timedelta(seconds=3.9))
    assert not waiting.done()
    await clock.advance(timedelta(seconds=0.2))

    with pytest.raises(OutcomeUnknown):
        await waiting
    assert ["canceled"] == ended


async def test_a_canceled_caller_takes_its_call_along() -> None:
    clock = ManualClock()
    never = asyncio.Event()
    ended: list[str] = []

    async def slow() -> str:
        try:
            await never.wait()
        finally:
            ended.append("ended")
        return "never"

    waiting = asyncio.ensure_future(Patience(clock).write(slow))
    await settle()
    waiting.cancel()
    await settle()

    assert waiting.cancelled()
    assert ["ended"] == ended


async def test_a_call_that_does_not_end_when_it_is_canceled_is_left_to_itself() -> None:
    clock = ManualClock()
    late = asyncio.Event()

    async def stubborn() -> str:
        while not late.is_set():
            try:
                await late.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    waiting = asyncio.ensure_future(Patience(clock).write(stubborn))
    await clock.advance(CALL_DEADLINE + FAREWELL)

    with pytest.raises(OutcomeUnknown):
        await waiting
    late.set()
    await settle()


@pytest.mark.parametrize(("errors", "expected"), [([], BrokerUnavailable), ([LOST], OutcomeUnknown)])
async def test_a_call_that_was_never_sent_has_done_nothing_unless_an_earlier_try_has(
    errors: list[Exception], expected: type[Exception]
) -> None:
    clock = ManualClock()
    never = asyncio.Event()
    flaky = Flaky(*errors)

    async def queued() -> str:
        await flaky()
        try:
            await never.wait()
        except asyncio.CancelledError as error:
            raise Unsent from error
        return "never"

    assert expected is await outcome(clock, asyncio.ensure_future(Patience(clock).write(queued)))
    assert clock.monotonic() < (CALL_DEADLINE + timedelta(seconds=0.1)).total_seconds()


async def test_without_time_nothing_is_asked() -> None:
    clock = ManualClock()
    patience = Patience(clock)
    await clock.advance(CALL_DEADLINE)
    flaky = Flaky()

    assert BrokerUnavailable is await outcome(clock, asyncio.ensure_future(patience.once(flaky)))
    assert 0 == flaky.calls


async def test_all_calls_of_a_use_case_share_one_deadline() -> None:
    clock = ManualClock()
    patience = Patience(clock)
    await clock.advance(timedelta(seconds=3.95))
    flaky = Flaky(DOWN)

    assert BrokerUnavailable is await outcome(clock, asyncio.ensure_future(patience.write(flaky)))
    assert 1 == flaky.calls


async def test_what_must_not_be_repeated_is_not() -> None:
    clock = ManualClock()
    flaky = Flaky(DOWN)

    assert BrokerUnavailable is await outcome(clock, asyncio.ensure_future(Patience(clock).once(flaky)))
    assert 1 == flaky.calls
