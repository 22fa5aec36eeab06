"""Waiting for a task to end: any number of callers, one ear on the process's event subscription."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context
from datetime import timedelta
from typing import Final

from dtq.application.fan_out import FanOut, TooManyClients
from dtq.application.fan_out_buffer import CRITICAL
from dtq.application.fan_out_filter import EventFilter
from dtq.application.fan_out_tap import ControlKind, Ending, Message, TapClosed
from dtq.application.nudge import Nudge
from dtq.application.tasks import TaskService, TaskView
from dtq.domain.errors import DtqError, FieldProblem, InvalidRequest
from dtq.domain.events import Event
from dtq.ports.environment import Clock

LONGEST: Final = timedelta(seconds=60)
"""How long one call may wait."""

MAX_WAITERS: Final = 10_000
"""How many calls may wait in one process."""

LOOK: Final = timedelta(seconds=10)
"""After how long a waiting call looks at its task although it heard nothing: events may be lost."""

LOOK_DEAF: Final = timedelta(seconds=1)
"""The same, while events do not come in at all."""

_SILENCE: Final = timedelta(hours=1)
_ENDINGS: Final = EventFilter(types=frozenset(CRITICAL))


class TooManyWaiters(DtqError):
    """As many calls wait as may."""

    code = "TOO_MANY_CLIENTS"

    def __init__(self) -> None:
        super().__init__(f"{MAX_WAITERS} calls wait for their tasks here, which is the most that may")


class Waiting:
    """Answers as soon as a task has ended. A wait costs no request while nothing happens, but for a rare look."""

    def __init__(self, tasks: TaskService, *, fan_out: FanOut, clock: Clock) -> None:
        self._tasks = tasks
        self._fan_out = fan_out
        self._clock = clock
        self._waiters: dict[str, set[Nudge]] = {}
        self._number = 0
        self._ear: asyncio.Task[None] | None = None
        self._hears = False
        self._is_over = False

    async def ended(self, task_id: str, *, within: timedelta) -> TaskView:
        """Return the task when it has ended, or as it is after *within* (0..60 seconds), or when the process ends.

        Raises TaskNotFound, InvalidRequest, TooManyWaiters, or BrokerUnavailable.
        """
        if not timedelta() <= within <= LONGEST:
            raise InvalidRequest((FieldProblem("wait", f"must be within 0..{LONGEST.total_seconds():g} seconds"),))
        if not within:
            return await self._tasks.get(task_id)
        ends_at = self._clock.monotonic() + within.total_seconds()
        with self._listening(task_id) as nudge:
            while True:
                view = await self._tasks.get(task_id)
                left = timedelta(seconds=ends_at - self._clock.monotonic())
                if view.task.is_terminal or self._is_over or left <= timedelta():
                    return view
                await nudge.wait(at_most=min(left, LOOK if self._hears else LOOK_DEAF))

    @contextmanager
    def _listening(self, task_id: str) -> Iterator[Nudge]:
        if self._number >= MAX_WAITERS:
            raise TooManyWaiters
        nudge = Nudge(self._clock)
        self._waiters.setdefault(task_id, set()).add(nudge)
        self._number += 1
        if self._ear is None or self._ear.done():
            self._ear = asyncio.create_task(self._listen(), name="waiting", context=Context())
        try:
            yield nudge
        finally:
            self._number -= 1
            self._waiters[task_id].discard(nudge)
            if not self._waiters[task_id]:
                del self._waiters[task_id]
            if not self._number:
                self._ear.cancel()

    async def _listen(self) -> None:
        """Hear which tasks end, until nobody waits; where that is not possible now, leave it to the looks."""
        try:
            while not self._is_over:
                await self._listen_once()
        except TooManyClients:
            return
        finally:
            self._hears = False

    async def _listen_once(self) -> None:
        try:
            with self._fan_out.listen(_ENDINGS, encode=_heard) as tap:
                while True:
                    for heard in await tap.take(at_most=_SILENCE):
                        self._hear(heard)
        except TapClosed as closed:
            self._is_over = closed.ending is Ending.SHUTDOWN
            self._wake_all()

    def _hear(self, heard: str | ControlKind) -> None:
        if not isinstance(heard, ControlKind):
            for nudge in self._waiters.get(heard, ()):
                nudge.give()
            return
        if heard is not ControlKind.HEARTBEAT:
            self._hears = heard is not ControlKind.INTERRUPTED
            # what has happened before, or in a gap, was not heard
            self._wake_all()

    def _wake_all(self) -> None:
        for nudges in self._waiters.values():
            for nudge in nudges:
                nudge.give()


def _heard(message: Message) -> str | ControlKind:
    return message.task_id or "" if isinstance(message, Event) else message.control
