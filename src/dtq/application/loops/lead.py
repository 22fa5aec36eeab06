"""The duty of the one leader: what is due goes from the schedule to its queue."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final, assert_never

from msgspec import Struct

from dtq.application.group_commit import GroupCommit
from dtq.application.nudge import StopSign
from dtq.application.transact import Settled, Vanished, transact
from dtq.domain.change import Change
from dtq.domain.decision import Drop, DropReason
from dtq.domain.errors import is_outage
from dtq.domain.lifecycle import promote
from dtq.domain.retention import LEAD_TERM
from dtq.domain.task import NO_VERSION, LeaseToken, Task, TaskId
from dtq.domain.text import class_name, text_of
from dtq.ports.answers import CommitAnswer, Refused
from dtq.ports.broker import Broker
from dtq.ports.environment import Chance, Clock, Ids
from dtq.ports.events import Observer
from dtq.ports.workers import Leadership

TERM: Final = LEAD_TERM
"""How long the lead lasts unless it is renewed."""

_RENEW: Final = timedelta(seconds=3)
_LONGEST_SLEEP: Final = timedelta(milliseconds=250)
_SHORTEST_SLEEP: Final = timedelta(milliseconds=2)
_BATCH: Final = 100


class LeadParts(Struct, frozen=True, kw_only=True):
    """What the leader works with."""

    broker: Broker
    commits: GroupCommit[Change, CommitAnswer]
    leadership: Leadership
    stop: StopSign
    clock: Clock
    ids: Ids
    chance: Chance
    observer: Observer


class Lead:
    """Takes the lead where nobody has it, keeps it, and promotes; one ``step`` at a time."""

    def __init__(self, parts: LeadParts) -> None:
        self._parts = parts
        self._token: LeaseToken = parts.ids.lease()
        self._leads_until = float("-inf")
        self._renew_at = float("-inf")
        self._taken: dict[TaskId, Task | TaskId] = {}

    @property
    def is_leading(self) -> bool:
        """Whether this worker leads, for all it knows."""
        return self._parts.clock.monotonic() < self._leads_until

    async def step(self) -> None:
        """Renew the lead and promote what is due, or rest until something is due, or may be."""
        if not await self._renew():
            await self._parts.stop.pause(_RENEW * self._parts.chance.uniform(0.8, 1.0))
            return
        rest = await self._until_due()
        if rest is None:
            await self._promote_batch()
        else:
            await self._parts.stop.pause(rest)

    async def resign(self) -> None:
        """Let another worker lead at once."""
        if self.is_leading:
            self._leads_until = float("-inf")
            await self._parts.leadership.resign(self._token)

    async def _renew(self) -> bool:
        now = self._parts.clock.monotonic()
        if now < self._renew_at:
            return self.is_leading
        leads = await self._parts.leadership.acquire(self._token, term=TERM)
        self._leads_until = now + TERM.total_seconds() if leads else float("-inf")
        self._renew_at = now + _RENEW.total_seconds() if leads else float("-inf")
        return leads

    async def _promote_batch(self) -> None:
        """Promote up to a batch of due tasks."""
        if not self._taken:
            now = self._parts.clock.now()
            taken = await self._parts.broker.take_due(now=now, leader=self._token, limit=_BATCH)
            self._taken = {one.task_id if isinstance(one, Task) else one: one for one in taken}
        if not self._taken:
            # overdue, and yet it was not to be had: perhaps the lead is lost
            self._renew_at = float("-inf")
            await self._parts.stop.pause(_SHORTEST_SLEEP)
            return
        # what an outage leaves here is on loan, and is done first once the broker is back
        tasks, gone = _in_order(list(self._taken.values()))
        duties = {task.task_id: self._promote(task) for task in tasks}
        duties |= {task_id: self._forget(task_id) for task_id in gone}
        outcomes = await asyncio.gather(*duties.values(), return_exceptions=True)
        self._set_aside({task_id: error for task_id, error in zip(duties, outcomes, strict=True) if error is not None})
        self._taken = {}

    def _set_aside(self, errors: Mapping[TaskId, BaseException]) -> None:
        """Tell of tasks that are bad by themselves, and leave them on loan: they come round when that is over.

        Raises what says nothing of a single task, such as an outage.
        """
        for error in errors.values():
            if is_outage(error) or not isinstance(error, Exception):
                raise error
        if errors:
            task_id, error = next(iter(errors.items()))
            reason = f"{task_id}: {class_name(error)}: {text_of(error)}"
            self._parts.observer.noticed("records_unreadable", entries=len(errors), reason=reason)

    async def _promote(self, task: Task) -> None:
        judged = task

        def decide(found: Task) -> Change | Drop:
            nonlocal judged
            judged = found
            return promote(found, now=self._parts.clock.now(), token=self._parts.ids.token())

        answer = await transact(task, decide=decide, commit=self._parts.commits.one)
        match answer:
            case Settled(change=change):
                self._parts.observer.committed(change)
            case Drop(reason=DropReason.NOT_DUE):
                pass
            case Drop():
                await self._parts.broker.forget(judged.task_id, version=judged.version)
            case Vanished():
                await self._parts.broker.forget(task.task_id, version=NO_VERSION)
            case Refused():
                raise AssertionError(f"a promotion requires nothing, but was refused: {answer}")
            case _:
                assert_never(answer)

    async def _forget(self, task_id: TaskId) -> None:
        """Drop an id whose task is gone. Raises BrokerRefused where it is there and cannot be read."""
        if not await self._parts.broker.forget(task_id, version=NO_VERSION):
            await self._parts.broker.load(task_id)

    async def _until_due(self) -> timedelta | None:
        """Return for how long there is nothing to promote, as far as can be told; None where there is something."""
        if self._taken:
            return None
        due = await self._parts.broker.next_due()
        if due is None:
            return _LONGEST_SLEEP
        left = due - self._parts.clock.now()
        return min(max(left, _SHORTEST_SLEEP), _LONGEST_SLEEP) if left > timedelta() else None


def _in_order(taken: Sequence[Task | TaskId]) -> tuple[Sequence[Task], Sequence[TaskId]]:
    """Split *taken* into tasks, highest priority and longest due first, and ids whose tasks are gone."""
    tasks = sorted(
        (one for one in taken if isinstance(one, Task)), key=lambda task: (-task.priority, task.available_at)
    )
    return tasks, [one for one in taken if not isinstance(one, Task)]
