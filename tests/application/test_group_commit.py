"""Many callers share requests, and none of them suffers from another."""

import asyncio
from collections.abc import Sequence

import pytest

from dtq.adapters.memory.clock import settle
from dtq.application.group_commit import MAX_BATCH, GroupCommit, together
from dtq.domain.errors import BrokerBehind, BrokerUnavailable, OutcomeUnknown
from dtq.ports.answers import PartlyAnswered
from tests.application.requests import Sender


async def test_callers_of_one_tick_share_a_request() -> None:
    sender = Sender()
    group = GroupCommit(sender.send)

    answers = await asyncio.gather(*[group.one(number) for number in range(5)])

    assert [0, 2, 4, 6, 8] == answers
    assert [[0, 1, 2, 3, 4]] == sender.batches


async def test_what_comes_while_a_batch_is_under_way_goes_with_the_next() -> None:
    sender = Sender()
    group = GroupCommit(sender.send)
    sender.go.clear()
    first = asyncio.ensure_future(group.one(1))
    await settle()

    rest = [asyncio.ensure_future(group.one(number)) for number in (2, 3)]
    await settle()
    assert [[1]] == sender.batches
    sender.go.set()

    assert [2, 4, 6] == await asyncio.gather(first, *rest)
    assert [[1], [2, 3]] == sender.batches
    assert 1 == sender.most_under_way


async def test_a_batch_holds_a_hundred_items_at_most() -> None:
    sender = Sender()
    group = GroupCommit(sender.send)

    answers = await asyncio.gather(*[group.ask(number) for number in range(250)])

    assert [2 * number for number in range(250)] == answers
    assert [MAX_BATCH, MAX_BATCH, 50] == [len(batch) for batch in sender.batches]


async def test_a_failed_request_reaches_all_of_its_callers_and_no_other() -> None:
    sender = Sender()
    group = GroupCommit(sender.send)
    sender.poison = 1
    sender.go.clear()
    failing = [asyncio.ensure_future(group.one(number)) for number in (1, 2)]
    await settle()
    later = asyncio.ensure_future(group.one(3))
    await settle()

    sender.go.set()
    results = await asyncio.gather(*failing, later, return_exceptions=True)

    assert [True, True, False] == [isinstance(result, BrokerUnavailable) for result in results]
    assert 6 == results[2]


async def test_an_item_that_spoils_its_batch_fails_alone() -> None:
    sender = Sender()
    group = GroupCommit(sender.send)
    sender.poison, sender.error = 1, ValueError("cannot be encoded")

    results = await asyncio.gather(*[group.one(number) for number in (0, 1, 2)], return_exceptions=True)

    assert (0, 4) == (results[0], results[2])
    assert isinstance(results[1], ValueError)


async def test_a_canceled_caller_takes_its_unsent_item_along_and_holds_nobody_up() -> None:
    sender = Sender()
    group = GroupCommit(sender.send)
    sender.go.clear()
    first, second, third = [asyncio.ensure_future(group.one(1)), None, None]
    await settle()
    second, third = asyncio.ensure_future(group.one(2)), asyncio.ensure_future(group.one(3))
    await settle()

    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    sender.go.set()

    assert (2, 6) == (await first, await third)
    assert [[1], [3]] == sender.batches


async def test_a_caller_that_is_canceled_at_the_moment_of_sending_takes_its_item_along() -> None:
    sender = Sender()
    group = GroupCommit(sender.send)
    first, second = asyncio.ensure_future(group.one(1)), asyncio.ensure_future(group.one(2))
    # both wait, and the request is to be made in the next turn of the loop
    await settle(turns=1)

    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first

    assert 4 == await second
    assert [[2]] == sender.batches


async def test_a_caller_that_is_canceled_after_its_item_was_sent_holds_nobody_up() -> None:
    sender = Sender()
    group = GroupCommit(sender.send)
    sender.go.clear()
    first, second = asyncio.ensure_future(group.one(1)), asyncio.ensure_future(group.one(2))
    await settle()

    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    sender.go.set()

    assert 4 == await second
    assert 6 == await group.one(3)


async def test_a_request_that_is_canceled_from_within_fails_its_callers() -> None:
    async def send(items: Sequence[int]) -> Sequence[int]:
        raise asyncio.CancelledError(len(items))

    group: GroupCommit[int, int] = GroupCommit(send)

    with pytest.raises(OutcomeUnknown):
        await group.one(1)
    with pytest.raises(OutcomeUnknown):
        await group.alone(1)
    assert [OutcomeUnknown] * 2 == [
        type(error) for error in await asyncio.gather(group.one(1), group.one(2), return_exceptions=True)
    ]


async def test_what_is_given_up_was_sent_or_never_will_be() -> None:
    sender = Sender()
    group = GroupCommit(sender.send)
    sender.go.clear()
    asked = [group.ask(1)]
    await settle()
    asked.append(group.ask(2))

    group.give_up(asked)
    sender.go.set()
    late = await group.one(3)

    assert [OutcomeUnknown, BrokerUnavailable] == [type(one.exception()) for one in asked]
    assert 6 == late
    assert [[1], [3]] == sender.batches


async def test_what_nobody_asks_for_any_more_is_not_sent() -> None:
    sender = Sender()
    group = GroupCommit(sender.send, weigh=lambda item: item, most=10)
    sender.go.clear()
    asked = [group.ask(1)]
    await settle()
    asked += [group.ask(10), group.ask(1)]
    await settle()
    assert BrokerBehind is type(asked[2].exception())

    group.forget(asked)
    last = group.ask(10)
    await settle()
    sender.go.set()

    assert 20 == await last
    assert [[1], [10]] == sender.batches


async def test_of_a_request_that_is_partly_answered_each_caller_hears_what_is_his() -> None:
    sender = Sender()
    group = GroupCommit(sender.send)
    sender.poison = 2
    sender.error = PartlyAnswered([2, BrokerUnavailable("full")])

    made, refused = await asyncio.gather(group.one(1), group.one(2), return_exceptions=True)

    assert 2 == made
    assert BrokerUnavailable is type(refused)
    assert [[1, 2]] == sender.batches


async def test_an_idle_group_works_again_after_a_failure() -> None:
    sender = Sender()
    group = GroupCommit(sender.send)
    sender.poison = 1
    with pytest.raises(BrokerUnavailable):
        await group.one(1)

    assert 4 == await group.one(2)


async def test_what_is_too_heavy_to_wait_is_refused_at_once_and_room_comes_back() -> None:
    sender = Sender()
    group = GroupCommit(sender.send, weigh=lambda item: item, most=10)
    sender.go.clear()
    under_way = asyncio.ensure_future(group.one(9))
    await settle()
    waiting = [asyncio.ensure_future(group.one(number)) for number in (4, 6)]
    await settle()

    with pytest.raises(BrokerBehind):
        await group.one(1)
    assert BrokerBehind is type(group.ask(1).exception())
    waiting[1].cancel()
    await settle()
    late = asyncio.ensure_future(group.one(3))
    await settle()
    sender.go.set()

    assert [18, 8, 6] == [await one for one in (under_way, waiting[0], late)]
    assert [[9], [4, 3]] == sender.batches
    sender.go.clear()
    again = [asyncio.ensure_future(group.one(1))]
    await settle()
    again += [asyncio.ensure_future(group.one(number)) for number in (3, 7)]
    await settle()
    sender.go.set()
    assert [2, 6, 14] == list(await asyncio.gather(*again))


async def test_an_item_that_nothing_waits_before_may_weigh_anything() -> None:
    sender = Sender()
    group = GroupCommit(sender.send, weigh=lambda item: item, most=10)

    assert 22 == await group.one(11)


async def test_what_goes_together_fails_together_and_an_item_that_spoils_a_request_keeps_none_back() -> None:
    sender = Sender()
    assert [2, 4, 6] == list(await together([1, 2, 3], send=sender.send))

    sender.poison = 1
    with pytest.raises(BrokerUnavailable):
        await together([1, 2], send=sender.send)
    sender.error = ValueError("cannot be encoded")
    with pytest.raises(ValueError, match="cannot be encoded"):
        await together([1, 2], send=sender.send)

    assert [[1, 2, 3], [1, 2], [1, 2], [1], [2]] == sender.batches
