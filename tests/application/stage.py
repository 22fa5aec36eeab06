"""What a world stands on: a clock, ids and chance that a test can follow, and an observer that remembers."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import Any

from dtq.adapters.memory import ManualClock
from dtq.adapters.memory.clock import ManualTimer
from dtq.application.execution import Attempt, Executor
from dtq.domain.change import Change
from dtq.domain.events import Event
from dtq.domain.outcome import Outcome
from dtq.domain.status import TaskStatus
from dtq.domain.task import LeaseToken, Task, TaskId, Version, WorkerId

MOMENT = timedelta(microseconds=1)


class TickingClock(ManualClock):
    """A hand-moved clock on which nothing happens in no time at all: rounding cannot make a loop turn for ever."""

    def call_later(self, delay: timedelta, callback: Callable[[], None]) -> ManualTimer:
        return super().call_later(max(delay, MOMENT), callback)


class CountedIds:
    """Ids that a reader of a failing test can tell apart, from those of the factories, too."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def task(self) -> TaskId:
        return TaskId(f"{next(self._numbers):032x}")

    def worker(self) -> WorkerId:
        return WorkerId(f"worker-{next(self._numbers):08x}")

    def token(self) -> Version:
        return Version(f"counted-token-{next(self._numbers)}")

    def lease(self) -> LeaseToken:
        return LeaseToken(f"counted-lease-{next(self._numbers)}")


class MiddleChance:
    """Chance that always falls in the middle."""

    def uniform(self, low: float, high: float) -> float:
        return (low + high) / 2


class Hearing:
    """What is told of one attempt: its outcomes, and that its handler has ended."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome | None] = []
        self.ended = asyncio.Event()

    def begin(self, executor: Executor, task: Task) -> Attempt:
        """Begin an attempt and listen to it."""
        return executor.begin(task, on_decided=self.outcomes.append, on_ended=self.ended.set)


class Notes:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.events: list[Event] = []
        self.notices: list[tuple[str, dict[str, Any]]] = []

    def committed(self, *changes: Change) -> None:
        self.changes += changes

    def happened(self, event: Event) -> None:
        self.events.append(event)

    def noticed(self, what: str, **details: str | float | bool | None) -> None:
        self.notices.append((what, details))

    def of(self, what: str) -> list[dict[str, Any]]:
        """The details of every notice of one kind."""
        return [details for name, details in self.notices if name == what]

    def steps(self, task_id: TaskId) -> list[TaskStatus]:
        """What became of a task, step by step, as far as this observer's process made it so."""
        return [change.after.status for change in self.changes if change.after.task_id == task_id]
