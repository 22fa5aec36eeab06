"""Many items go in a second request while the first is under way, few wait for its answer."""

import asyncio
from collections.abc import Sequence

from dtq.adapters.memory.clock import settle
from dtq.application.group_commit import GroupCommit
from dtq.domain.errors import BrokerUnavailable


class Held:
    """Answers each item with its double, each request when it is let."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self._held: list[asyncio.Future[None]] = []

    async def send(self, items: Sequence[int]) -> Sequence[int]:
        self.batches.append(list(items))
        self._held.append(asyncio.get_running_loop().create_future())
        await self._held[-1]
        return [2 * item for item in items]

    async def answer(self, place: int) -> None:
        """Let a request be answered, by its place among all."""
        self._held[place].set_result(None)
        await settle()

    async def fail(self, place: int) -> None:
        """Let it fail."""
        self._held[place].set_exception(BrokerUnavailable("gone"))
        await settle()


async def asked(group: GroupCommit[int, int], *numbers: int) -> list["asyncio.Future[int]"]:
    futures = [group.ask(number) for number in numbers]
    await settle()
    return futures


async def test_a_second_request_goes_beside_the_first_when_enough_waits_and_never_a_third() -> None:
    held = Held()
    group = GroupCommit(held.send, beside=3)

    futures = await asked(group, 1)
    futures += await asked(group, 2, 3)
    assert [[1]] == held.batches
    futures += await asked(group, 4)
    assert [[1], [2, 3, 4]] == held.batches
    futures += await asked(group, 5, 6, 7, 8)
    assert [[1], [2, 3, 4]] == held.batches

    await held.answer(1)
    assert [[1], [2, 3, 4], [5, 6, 7, 8]] == held.batches
    assert [False, True, True, True, False] == [one.done() for one in futures[:5]]
    await held.answer(0)
    await held.answer(2)
    assert [2, 4, 6, 8, 10, 12, 14, 16] == [one.result() for one in futures]


async def test_what_is_asked_for_in_one_tick_goes_in_one_request() -> None:
    held = Held()
    group = GroupCommit(held.send, beside=3)

    await asked(group, *range(10))

    assert [list(range(10))] == held.batches


async def test_what_is_too_little_waits_until_the_other_request_is_answered() -> None:
    held = Held()
    group = GroupCommit(held.send, beside=3)
    futures = await asked(group, 1)
    futures += await asked(group, 2, 3, 4)
    futures += await asked(group, 5)

    await held.answer(1)
    assert [[1], [2, 3, 4]] == held.batches
    futures += await asked(group, 6)
    await held.answer(0)

    assert [[1], [2, 3, 4], [5, 6]] == held.batches
    await held.answer(2)
    assert [2, 4, 6, 8, 10, 12] == [one.result() for one in futures]


async def test_a_request_that_fails_keeps_neither_the_other_nor_what_waits() -> None:
    held = Held()
    group = GroupCommit(held.send, beside=2)
    first = await asked(group, 1)
    second = await asked(group, 2, 3)
    waiting = await asked(group, 4)

    await held.fail(0)
    assert [BrokerUnavailable] == [type(one.exception()) for one in first]
    await held.answer(1)
    await held.answer(2)

    assert [[1], [2, 3], [4]] == held.batches
    assert [4, 6, 8] == [one.result() for one in (*second, *waiting)]


async def test_enough_goes_beside_one_that_goes_alone_and_it_may_not_go_beside_them() -> None:
    held = Held()
    group = GroupCommit(held.send, beside=2)
    first = await asked(group, 1)
    await held.answer(0)
    assert first[0].done()
    assert group.may_go_alone
    alone = asyncio.ensure_future(group.alone(2))
    await settle()

    rest = await asked(group, 3, 4)
    rest += await asked(group, 5)
    assert [[1], [2], [3, 4]] == held.batches
    await held.answer(1)
    assert 4 == await alone
    assert [[1], [2], [3, 4]] == held.batches
    assert not group.may_go_alone
    await held.answer(2)
    await held.answer(3)

    assert [[1], [2], [3, 4], [5]] == held.batches
    assert [6, 8, 10] == [one.result() for one in rest]
