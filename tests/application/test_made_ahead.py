"""The next request is made while the first is under way, and sent when that is answered."""

import asyncio
from collections.abc import Coroutine, Sequence

from dtq.adapters.memory.clock import settle
from dtq.application.group_commit import MAX_BATCH, GroupCommit
from dtq.domain.errors import BrokerUnavailable, OutcomeUnknown


class Requests:
    """Makes requests when it is called, and has each answer with doubles when it is let."""

    def __init__(self) -> None:
        self.made: list[list[int]] = []
        self.sent: list[list[int]] = []
        self.spoilt: int | None = None
        self.go: list[asyncio.Event] = []

    def __call__(self, items: Sequence[int]) -> Coroutine[None, None, Sequence[int]]:
        if self.spoilt in items:
            raise ValueError("cannot be written")
        self.made.append(list(items))
        return self._send(items)

    async def _send(self, items: Sequence[int]) -> Sequence[int]:
        self.sent.append(list(items))
        self.go.append(asyncio.Event())
        await self.go[-1].wait()
        return [2 * item for item in items]

    async def answer(self) -> None:
        """Let the request be answered that is under way."""
        self.go[-1].set()
        await settle()


async def asked(group: GroupCommit[int, int], *numbers: int) -> list["asyncio.Future[int]"]:
    futures = [group.ask(number) for number in numbers]
    await settle()
    return futures


async def test_of_enough_that_waits_the_next_request_is_made_and_not_yet_sent() -> None:
    requests = Requests()
    group = GroupCommit(requests, ahead=3)

    futures = await asked(group, 1)
    futures += await asked(group, 2, 3)
    assert [[1]] == requests.made
    futures += await asked(group, 4, 5)
    futures += await asked(group, 6)
    assert [[1], [2, 3, 4, 5]] == requests.made
    assert [[1]] == requests.sent

    await requests.answer()
    assert [[1], [2, 3, 4, 5]] == requests.sent == requests.made
    await requests.answer()
    await requests.answer()
    assert [[1], [2, 3, 4, 5], [6]] == requests.sent == requests.made
    assert [2, 4, 6, 8, 10, 12] == [one.result() for one in futures]


async def test_where_enough_waits_as_a_request_is_sent_the_next_one_is_made_too() -> None:
    requests = Requests()
    group = GroupCommit(requests, ahead=3)
    futures = await asked(group, 1)
    futures += await asked(group, 2, 3, 4)
    futures += await asked(group, 5, 6, 7)

    await requests.answer()

    assert [[1], [2, 3, 4], [5, 6, 7]] == requests.made
    assert [[1], [2, 3, 4]] == requests.sent
    group.forget(futures)


async def test_what_comes_after_the_last_of_many_waits_for_company_again() -> None:
    requests = Requests()
    group = GroupCommit(requests, ahead=3)
    futures = await asked(group, 1)
    futures += await asked(group, 2)
    group.no_more()
    await settle()
    futures += await asked(group, 3)
    await requests.answer()

    futures += await asked(group, 4)
    assert [[1], [2]] == requests.made
    await requests.answer()
    await requests.answer()

    assert [[1], [2], [3, 4]] == requests.sent
    assert [2, 4, 6, 8] == [one.result() for one in futures]


async def test_what_is_asked_for_in_one_tick_goes_in_one_request() -> None:
    requests = Requests()
    group = GroupCommit(requests, ahead=3)

    await asked(group, *range(10))

    assert [list(range(10))] == requests.made


async def test_after_the_last_item_the_next_request_is_made_of_however_little_waits() -> None:
    requests = Requests()
    group = GroupCommit(requests, ahead=3)
    group.no_more()
    futures = [group.ask(1)]
    group.no_more()
    await settle()
    futures += await asked(group, 2)
    assert [[1]] == requests.made

    group.no_more()
    futures += await asked(group, 3)
    group.no_more()
    await settle()
    assert [[1], [2, 3]] == requests.made

    await requests.answer()
    await requests.answer()
    assert [[1], [2, 3]] == requests.sent == requests.made
    assert [2, 4, 6] == [one.result() for one in futures]


async def test_what_an_idle_group_has_no_more_of_is_forgotten() -> None:
    requests = Requests()
    group = GroupCommit(requests, ahead=3)
    group.no_more()
    await settle()
    assert [] == requests.made
    futures = await asked(group, 1)

    futures += await asked(group, 2)

    assert [[1]] == requests.made
    group.forget(futures)


async def test_no_more_goes_in_a_request_that_is_made_ahead_than_in_any_other() -> None:
    requests = Requests()
    group = GroupCommit(requests)
    await asked(group, 0)
    futures = await asked(group, *range(1, 2 * MAX_BATCH))

    group.no_more()
    await settle()

    assert [1, MAX_BATCH] == [len(one) for one in requests.made]
    group.forget(futures)


async def test_what_is_given_up_is_not_sent_though_its_request_was_made() -> None:
    requests = Requests()
    group = GroupCommit(requests, ahead=3)
    futures = await asked(group, 1)
    futures += await asked(group, 2, 3, 4)

    group.give_up(futures[:2])
    await requests.answer()
    await requests.answer()

    assert [OutcomeUnknown, BrokerUnavailable] == [type(one.exception()) for one in futures[:2]]
    assert [[1], [3, 4]] == requests.sent
    assert [6, 8] == [one.result() for one in futures[2:]]


async def test_what_was_canceled_at_the_last_moment_is_not_sent_either() -> None:
    requests = Requests()
    group = GroupCommit(requests, ahead=3)
    await asked(group, 1)
    futures = await asked(group, 2, 3, 4)

    futures[1].cancel()
    await requests.answer()
    await requests.answer()

    assert [[1], [2, 4]] == requests.sent
    assert [4, 8] == [futures[0].result(), futures[2].result()]


async def test_one_that_is_withdrawn_and_not_in_it_leaves_a_request_as_it_was_made() -> None:
    requests = Requests()
    group = GroupCommit(requests, ahead=2)
    await asked(group, 1)
    await asked(group, 2, 3)
    late = await asked(group, 4)

    group.forget(late)
    await requests.answer()

    assert [[1], [2, 3]] == requests.made == requests.sent


async def test_an_item_that_no_request_can_be_made_of_fails_alone() -> None:
    requests = Requests()
    requests.spoilt = 3
    group = GroupCommit(requests, ahead=3)
    await asked(group, 1)
    futures = await asked(group, 2, 3, 4)

    for _ in range(3):
        await requests.answer()

    assert [[1], [2], [4]] == requests.sent
    assert [None, ValueError, None] == [None if (one := each.exception()) is None else type(one) for each in futures]


async def test_it_is_made_ahead_of_one_that_goes_alone_too() -> None:
    requests = Requests()
    group = GroupCommit(requests, ahead=2)
    first = await asked(group, 1)
    await requests.answer()
    assert first[0].done()
    alone = asyncio.ensure_future(group.alone(2))
    await settle()

    rest = await asked(group, 3, 4)
    assert [[1], [2], [3, 4]] == requests.made
    assert [[1], [2]] == requests.sent
    await requests.answer()
    await requests.answer()

    assert 4 == await alone
    assert [6, 8] == [one.result() for one in rest]
