"""What a leader's sweep does where much was left behind: all of it at one turn, and of suspects a bounded number."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from dtq.application.loops import strays
from dtq.application.loops.strays import SECOND_LOOK, Strays
from dtq.application.loops.upkeep import Sweeps, UpkeepParts
from dtq.application.nudge import StopSign
from dtq.domain.task import QueueName, Task, TaskId
from tests.application.stage import CountedIds, MiddleChance, Notes, TickingClock
from tests.factories import a_task, a_task_id


class LeftBehind:
    """A broker with much to clear away; a sweep gets as much of it as it asks for at once."""

    def __init__(self, *, each: int = 0, strays: Sequence[Task] = ()) -> None:
        self._claims = self._marks = each
        self._strays = strays
        self.loaded: list[TaskId] = []

    @property
    def left(self) -> tuple[int, int]:
        return self._claims, self._marks

    async def return_stale(self, *, limit: int, **_: object) -> int:
        part = min(limit, self._claims)
        self._claims -= part
        return part

    async def drop_marks(self, *, limit: int) -> int:
        part = min(limit, self._marks)
        self._marks -= part
        return part

    async def known(self) -> Sequence[str]:
        return ()

    async def names(self) -> Sequence[QueueName]:
        return ()

    async def strays(self, cursor: str, *, limit: int) -> tuple[str, Sequence[Task]]:
        del cursor, limit
        found, self._strays = self._strays, ()
        return "", found

    async def load(self, task_id: TaskId) -> None:
        self.loaded.append(task_id)


def strays_of(broker: Any, *, clock: TickingClock) -> Strays:
    none: Any = None
    return Strays(broker, store=broker, commits=none, clock=clock, ids=CountedIds(), observer=Notes())


async def test_all_that_was_left_behind_is_cleared_away_at_one_turn() -> None:
    clock, broker = TickingClock(), LeftBehind(each=250)
    any_port: Any = broker
    parts = UpkeepParts(
        schedule=any_port,
        queues=any_port,
        upkeep=any_port,
        workers=any_port,
        strays=strays_of(broker, clock=clock),
        stop=StopSign(clock),
        clock=clock,
        ids=CountedIds(),
        chance=MiddleChance(),
        observer=Notes(),
        is_leading=lambda: True,
    )
    sweeps = Sweeps(parts, heartbeat_interval=timedelta(seconds=5), keep_alive_after=timedelta(days=1))

    turn = asyncio.ensure_future(sweeps.step())
    await clock.advance(timedelta(seconds=1))

    assert turn.done()
    assert (0, 0) == broker.left


async def test_no_more_suspects_are_remembered_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strays, "_MAX_SUSPECTS", 2)
    tasks = [a_task(task_id=a_task_id()) for _ in range(5)]
    clock, broker = TickingClock(), LeftBehind(strays=tasks)
    scan = strays_of(broker, clock=clock)

    await scan.step()
    await clock.advance(SECOND_LOOK)
    await scan.step()

    assert [task.task_id for task in tasks[:2]] == broker.loaded
