"""One caller after the other sends by himself, and suffers from nobody; nobody suffers from him."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from dtq.adapters.memory import ManualClock
from dtq.adapters.memory.clock import ManualTimer, settle
from dtq.application.group_commit import GroupCommit
from dtq.application.patience import CALL_DEADLINE, Patience
from dtq.domain.errors import BrokerUnavailable, OutcomeUnknown
from tests.application.requests import Requests, Sender


class Ringing(ManualClock):
    """Lets the time of a use case pass, and gives nobody a turn in between."""

    def __init__(self) -> None:
        super().__init__()
        self._made: list[ManualTimer] = []

    def call_later(self, delay: timedelta, callback: Callable[[], None]) -> ManualTimer:
        self._made.append(super().call_later(delay, callback))
        return self._made[-1]

    def ring(self) -> None:
        self._elapsed += CALL_DEADLINE
        for timer in self._made:
            timer.fire()


async def test_where_none_had_company_the_next_may_go_alone() -> None:
    sender = Sender()
    group = GroupCommit(sender.send)
    may = [group.may_go_alone]

    sender.go.clear()
    first = group.ask(1)
    await settle()
    may.append(group.may_go_alone)
    sender.go.set()

    assert 2 == await first
    may.append(group.may_go_alone)
    assert 4 == await group.alone(2)
    may.append(group.may_go_alone)
    await asyncio.gather(group.ask(3), group.ask(4))
    may.append(group.may_go_alone)
    assert [False, False, True, True, False] == may
    assert [[1], [2], [3, 4]] == sender.batches


async def test_what_comes_while_one_goes_alone_goes_with_the_next() -> None:
    sender = Sender()
    group = GroupCommit(sender.send)
    await group.one(1)
    sender.go.clear()
    alone = asyncio.ensure_future(group.alone(2))
    await settle()

    rest = [group.ask(3), group.ask(4)]
    await settle()
    assert not group.may_go_alone
    sender.go.set()

    assert [4, 6, 8] == await asyncio.gather(alone, *rest)
    assert [[1], [2], [3, 4]] == sender.batches
    assert 1 == sender.most_under_way


@pytest.mark.parametrize("end", [asyncio.CancelledError, BrokerUnavailable])
async def test_one_that_goes_alone_and_fails_costs_nobody_else(end: type[BaseException]) -> None:
    sender = Sender()
    group = GroupCommit(sender.send)
    await group.one(1)
    sender.poison = 2
    sender.go.clear()
    alone = asyncio.ensure_future(group.alone(2))
    await settle()
    late = group.ask(3)

    if end is asyncio.CancelledError:
        alone.cancel()
        await settle()
        assert 1 == sender.under_way
    sender.go.set()

    with pytest.raises(end):
        await alone
    assert 6 == await late
    assert [[1], [2], [3]] == sender.batches
    assert group.may_go_alone


async def test_an_item_that_goes_alone_is_canceled_at_the_deadline_and_the_next_one_is_sent() -> None:
    clock, requests = ManualClock(), Requests()
    group = GroupCommit(requests)
    await group.ask("first")
    requests.go.clear()
    alone = asyncio.ensure_future(Patience(clock).write_among(group, "alone"))
    await clock.advance(timedelta(seconds=3.9))
    later = asyncio.ensure_future(Patience(clock).write_among(group, "later"))
    await clock.advance(timedelta(seconds=0.1))

    with pytest.raises(OutcomeUnknown):
        await alone
    requests.go.set()

    assert 0 == alone.cancelling()
    assert "later" == await later
    assert [["first"], ["alone"], ["later"]] == requests.sent
    assert "last" == await Patience(clock).write_among(group, "last")
    await clock.advance(CALL_DEADLINE)


@pytest.mark.parametrize("ring", [Ringing.ring, lambda _: None], ids=["out of time", "in time"])
async def test_who_leaves_while_his_item_goes_alone_is_canceled_and_nothing_else(
    ring: Callable[[Ringing], None],
) -> None:
    clock, requests = Ringing(), Requests()
    group = GroupCommit(requests)
    await group.ask("first")
    requests.go.clear()
    leaving = asyncio.ensure_future(Patience(clock).write_among(group, "alone"))
    await settle()

    leaving.cancel()
    # in the same turn of the event loop
    ring(clock)
    await settle()

    assert leaving.cancelled()
    assert group.may_go_alone
