"""Items that wait for their turn with a use case: they leave room when their caller leaves, and never wait in vain."""

import asyncio
from collections.abc import Sequence

import pytest

from dtq.adapters.memory import ManualClock
from dtq.adapters.memory.clock import settle
from dtq.application.group_commit import GroupCommit
from dtq.application.patience import CALL_DEADLINE, Patience
from dtq.domain.errors import BrokerUnavailable


class Slow:
    """Answers each item with itself, once it may."""

    def __init__(self) -> None:
        self.sent: list[list[str]] = []
        self.go = asyncio.Event()

    async def __call__(self, items: Sequence[str]) -> Sequence[str]:
        self.sent.append(list(items))
        await self.go.wait()
        return items


async def test_who_leaves_leaves_room_for_others() -> None:
    clock, slow = ManualClock(), Slow()
    group = GroupCommit(slow, weigh=len, most=10)
    under_way = group.ask("first")
    await settle()
    waiting = group.ask("wait")
    leaving = asyncio.ensure_future(Patience(clock).write_among(group, "leaves"))
    await settle()

    leaving.cancel()
    await settle()
    late = asyncio.ensure_future(Patience(clock).write_among(group, "enters"))
    await settle()
    slow.go.set()

    assert ["first", "wait", "enters"] == [await one for one in (under_way, waiting, late)]
    assert [["first"], ["wait", "enters"]] == slow.sent


async def test_without_time_no_turn_is_asked_for() -> None:
    clock, slow = ManualClock(), Slow()
    patience, group = Patience(clock), GroupCommit(slow, weigh=len, most=10)
    await clock.advance(CALL_DEADLINE)

    with pytest.raises(BrokerUnavailable, match="no time was left"):
        await patience.write_among(group, "late")

    assert [] == slow.sent
