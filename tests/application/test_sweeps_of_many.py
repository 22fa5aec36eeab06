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
from dtq.domain.errors import BrokerRefused
from dtq.domain.task import QueueName, Task, TaskId, WorkerId
from tests.application.stage import CountedIds, MiddleChance, Notes, TickingClock
from tests.factories import WORKER, a_task, a_task_id

BEAT = timedelta(seconds=5)


class LeftBehind:
    """A broker with much to clear away; a sweep gets as much of it as it asks for at once."""

    def __init__(self, *, each: int = 0, strays: Sequence[Task] = (), queues: Sequence[str] = ()) -> None:
        self._claims = self._marks = each
        self._strays = strays
        self._queues = [QueueName(name) for name in queues]
        self.loaded: list[TaskId] = []
        self.cleared: list[QueueName] = []
        self.renewed: list[tuple[QueueName, str]] = []
        self.cursors: list[str] = []
        self.damaged = ""
        self.silent: list[WorkerId] = []

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

    async def known(self) -> Sequence[WorkerId]:
        return self.silent

    async def get(self, worker: WorkerId) -> None:
        assert worker in self.silent

    async def remove(self, worker: WorkerId, **_: object) -> bool:
        assert worker in self.silent
        return False

    async def names(self) -> Sequence[QueueName]:
        return self._queues

    async def drop_consumers(self, queue: QueueName, **_: object) -> int:
        self._fail_for(queue)
        self.cleared.append(queue)
        return 0

    async def retire(self, queue: QueueName) -> bool:
        del queue
        return False

    async def keep_alive(self, queue: QueueName, *, cursor: str, **_: object) -> tuple[str, int]:
        self._fail_for(queue)
        self.renewed.append((queue, cursor))
        return self.cursors.pop(0) if self.cursors else "", 0

    def _fail_for(self, queue: QueueName) -> None:
        if queue == self.damaged:
            raise BrokerRefused(f"queue {queue} is damaged")

    async def strays(self, cursor: str, *, limit: int) -> tuple[str, Sequence[Task]]:
        del cursor, limit
        found, self._strays = self._strays, ()
        return "", found

    async def load(self, task_id: TaskId) -> None:
        self.loaded.append(task_id)


def strays_of(broker: Any, *, clock: TickingClock) -> Strays:
    none: Any = None
    return Strays(broker, store=broker, commits=none, clock=clock, ids=CountedIds(), observer=Notes())


def sweeps_of(broker: Any, *, clock: TickingClock, notes: Notes) -> Sweeps:
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
        observer=notes,
        is_leading=lambda: True,
    )
    return Sweeps(parts, heartbeat_interval=BEAT, keep_alive_after=timedelta(days=1))


async def step(sweeps: Sweeps, *, clock: TickingClock, times: int = 1) -> None:
    for _ in range(times):
        turn = asyncio.ensure_future(sweeps.step())
        await clock.advance(timedelta(seconds=1))
        assert turn.done()


async def test_all_that_was_left_behind_is_cleared_away_at_one_turn() -> None:
    clock, broker = TickingClock(), LeftBehind(each=250)

    await step(sweeps_of(broker, clock=clock, notes=Notes()), clock=clock)

    assert (0, 0) == broker.left


async def test_a_damaged_queue_keeps_no_other_from_being_cleared_and_renewed() -> None:
    clock, broker, notes = TickingClock(), LeftBehind(queues=["a", "b", "c"]), Notes()
    broker.damaged = "b"

    await step(sweeps_of(broker, clock=clock, notes=notes), clock=clock, times=30)

    assert ["a", "c"] == broker.cleared[:2]
    assert [("a", ""), ("c", "")] == broker.renewed
    assert {"queues", "keep_alive"} == {told["sweep"] for told in notes.of("sweep_failed")}


async def test_a_round_of_renewals_that_takes_hours_goes_on_where_it_was() -> None:
    clock, broker = TickingClock(), LeftBehind(queues=["a", "b"])
    broker.cursors = ["", "further"]
    sweeps = sweeps_of(broker, clock=clock, notes=Notes())
    await step(sweeps, clock=clock)
    await clock.advance(timedelta(hours=2))

    await step(sweeps, clock=clock)

    assert [("a", ""), ("b", ""), ("b", "further")] == broker.renewed


async def test_nobody_is_told_of_a_silent_worker_that_speaks_again() -> None:
    clock, broker, notes = TickingClock(), LeftBehind(), Notes()
    broker.silent = [WORKER]

    await step(sweeps_of(broker, clock=clock, notes=notes), clock=clock, times=60)

    assert [] == notes.events


async def test_no_more_suspects_are_remembered_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strays, "_MAX_SUSPECTS", 2)
    tasks = [a_task(task_id=a_task_id()) for _ in range(5)]
    clock, broker = TickingClock(), LeftBehind(strays=tasks)
    scan = strays_of(broker, clock=clock)

    await scan.step()
    await clock.advance(SECOND_LOOK)
    await scan.step()

    assert [task.task_id for task in tasks[:2]] == broker.loaded
