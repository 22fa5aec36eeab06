"""Calls are repeated for a while, and given up in time."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from dtq.adapters.memory import ManualClock
from dtq.adapters.memory.clock import settle
from dtq.application.group_commit import GroupCommit
from dtq.application.patience import CALL_DEADLINE, FAREWELL, Patience
from dtq.domain.errors import (
    BrokerBehind,
    BrokerOutOfMemory,
    BrokerRefused,
    BrokerUnavailable,
    OutcomeUnknown,
    StepStopped,
)
from dtq.ports.answers import Full
from tests.application.requests import Requests

DOWN = BrokerUnavailable("down")
LOST = OutcomeUnknown("lost")


class Flaky:
    """Raises what it was given, one by one, and then answers."""

    def __init__(self, *errors: Exception, answer: object = "answer") -> None:
        self.errors = list(errors)
        self.answer = answer
        self.calls = 0

    async def __call__(self) -> object:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return self.answer


async def outcome(clock: ManualClock, future: "asyncio.Future[Any]") -> object:
    while not future.done():
        await clock.advance(timedelta(milliseconds=50))
    error = future.exception()
    return future.result() if error is None else type(error)


async def answered(patience: Patience, group: GroupCommit[str, str], asked: Sequence["asyncio.Future[str]"]) -> None:
    with patience.in_time(group, asked):
        await asyncio.wait(asked)


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


async def test_an_item_is_sent_again_until_it_is_answered() -> None:
    clock, requests = ManualClock(), Requests(DOWN, LOST, DOWN)
    writing = Patience(clock).write_among(GroupCommit(requests), "answer")

    assert "answer" == await outcome(clock, asyncio.ensure_future(writing))
    assert [["answer"]] * 4 == requests.sent


async def test_an_item_whose_first_try_is_under_way_is_sent_once() -> None:
    clock, requests = ManualClock(), Requests()
    group = GroupCommit(requests)
    begun = [group.ask("answer"), group.ask("other")]
    patience = Patience(clock)
    await answered(patience, group, begun)

    answers = [await patience.write_among(group, "not sent", begun=one) for one in begun]

    assert ["answer", "other"] == answers
    assert [["answer", "other"]] == requests.sent


async def test_an_item_whose_first_try_has_failed_is_sent_again_after_a_pause() -> None:
    clock, requests = ManualClock(), Requests(LOST)
    group = GroupCommit(requests)
    patience = Patience(clock)
    begun = group.ask("answer")
    await answered(patience, group, [begun])

    assert "answer" == await outcome(clock, asyncio.ensure_future(patience.write_among(group, "answer", begun=begun)))
    assert 2 == len(requests.sent)


async def test_an_item_that_was_sent_and_not_answered_is_unknown_at_the_deadline() -> None:
    clock, requests = ManualClock(), Requests()
    requests.go.clear()

    assert OutcomeUnknown is await outcome(
        clock, asyncio.ensure_future(Patience(clock).write_among(GroupCommit(requests), "sent"))
    )
    assert clock.monotonic() < (CALL_DEADLINE + timedelta(seconds=0.1)).total_seconds()


@pytest.mark.parametrize(("errors", "expected"), [([], BrokerUnavailable), ([LOST], OutcomeUnknown)])
async def test_an_item_that_was_never_sent_has_done_nothing_unless_an_earlier_try_has(
    errors: list[Exception], expected: type[Exception]
) -> None:
    clock, requests = ManualClock(), Requests(*errors)
    group = GroupCommit(requests)
    begun = group.ask("late") if errors else None
    await settle()
    requests.go.clear()
    before = group.ask("before")
    await settle()

    writing = asyncio.ensure_future(Patience(clock).write_among(group, "late", begun=begun))
    found = await outcome(clock, writing)
    requests.go.set()

    assert "before" == await before
    assert expected is found
    assert [["late"]] * len(errors) + [["before"]] == requests.sent
    assert clock.monotonic() < (CALL_DEADLINE + timedelta(seconds=0.1)).total_seconds()


async def test_who_leaves_takes_along_what_was_not_sent() -> None:
    clock, requests = ManualClock(), Requests()
    group = GroupCommit(requests, most=10)
    requests.go.clear()
    before = group.ask("before")
    await settle()
    patience = Patience(clock)
    leaving = [
        asyncio.ensure_future(patience.write_among(group, "one")),
        asyncio.ensure_future(answered(patience, group, [group.ask("many"), group.ask("more")])),
    ]
    await settle()

    for one in leaving:
        one.cancel()
    await settle()
    requests.go.set()

    assert "before" == await before
    assert "last" == await group.ask("last")
    assert [True, True] == [one.cancelled() for one in leaving]
    assert [["before"], ["last"]] == requests.sent


async def test_what_many_asked_for_fails_at_the_deadline() -> None:
    clock, requests = ManualClock(), Requests()
    requests.go.clear()
    group = GroupCommit(requests)
    sent = group.ask("sent")
    await settle()
    asked = [sent, group.ask("unsent")]
    waiting = asyncio.ensure_future(answered(Patience(clock), group, asked))

    await clock.advance(CALL_DEADLINE)

    assert waiting.done()
    assert [OutcomeUnknown, BrokerUnavailable] == [type(one.exception()) for one in asked]


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


async def test_a_full_queue_says_nothing_of_an_earlier_try_that_was_lost() -> None:
    clock, full = ManualClock(), Full(reason="queue_full", value=5, limit=5)
    flaky = Flaky(LOST, answer=full)

    assert OutcomeUnknown is await outcome(clock, asyncio.ensure_future(Patience(clock).write(flaky)))
    assert full is await outcome(clock, asyncio.ensure_future(Patience(clock).write(Flaky(DOWN, answer=full))))
