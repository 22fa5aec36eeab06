"""Ends that are recorded beside each other: in one commit, and none of them suffers from another."""

import asyncio
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

from dtq.adapters.memory.clock import settle
from dtq.application.group_commit import MAX_BATCH
from dtq.application.settling import Settling
from dtq.domain.change import Change
from dtq.domain.delivery import FailurePolicy
from dtq.domain.errors import BrokerUnavailable
from dtq.domain.outcome import Outcome
from dtq.domain.status import TaskStatus
from dtq.domain.task import Task, TaskId, Version
from dtq.ports.answers import Applied, Broken, CommitAnswer, Conflict
from tests.application.stage import CountedIds, MiddleChance, Notes, TickingClock
from tests.factories import a_fault, a_success, a_task

S = TaskStatus


def applied(change: Change) -> CommitAnswer:
    return Applied(change.after)


def down(_: Change) -> CommitAnswer:
    raise BrokerUnavailable("down")


def spoiled_by(bad: Task) -> Callable[[Change], CommitAnswer]:
    """Answer that a change is made, unless it is of a task that cannot be sent."""

    def answer(change: Change) -> CommitAnswer:
        if change.after.task_id == bad.task_id:
            raise ValueError("cannot be encoded")
        return applied(change)

    return answer


class Broker:
    """Answers each commit as the next of its scripts has it, when it is let."""

    def __init__(self, *scripts: Callable[[Change], CommitAnswer]) -> None:
        self.scripts = list(scripts)
        self.batches: list[list[Change]] = []
        self.go = asyncio.Event()
        self.go.set()

    async def commit(self, changes: Sequence[Change]) -> Sequence[CommitAnswer]:
        self.batches.append(list(changes))
        script = self.scripts.pop(0) if self.scripts else applied
        await self.go.wait()
        return [script(change) for change in changes]

    @property
    def sizes(self) -> list[int]:
        """How many changes each request had."""
        return [len(batch) for batch in self.batches]


class Ward:
    """Many ends that are recorded beside each other."""

    def __init__(
        self, *scripts: Callable[[Change], CommitAnswer], notes: Notes | None = None, ids: CountedIds | None = None
    ) -> None:
        self.broker = Broker(*scripts)
        self.clock = TickingClock()
        self.notes = notes or Notes()
        self.over: list[Task] = []
        self.settling = Settling(
            self.broker.commit,
            policy=FailurePolicy(),
            clock=self.clock,
            ids=ids or CountedIds(),
            chance=MiddleChance(),
            observer=self.notes,
            on_outage=lambda: None,
        )

    def end(self, task: Task, outcome: Outcome | None = None) -> Task:
        assert task.lease is not None
        chosen = a_success() if outcome is None else outcome
        self.settling.settle(task, lease=task.lease, outcome=chosen, then=lambda: self.over.append(task))
        return task

    def end_many(self, count: int) -> list[Task]:
        return [self.end(a_task(status=S.RUNNING)) for _ in range(count)]


async def test_what_has_ended_goes_in_one_commit_and_what_ends_meanwhile_in_the_next() -> None:
    ward = Ward()
    ward.broker.go.clear()
    first = ward.end_many(3)
    await settle()

    later = ward.end_many(2)
    await settle()
    assert ([3], []) == (ward.broker.sizes, ward.over)
    ward.broker.go.set()
    await settle()

    assert ([3, 2], first + later) == (ward.broker.sizes, ward.over)
    assert 5 == len(ward.notes.changes) == ward.settling.tally.processed


async def test_a_commit_records_a_hundred_ends_at_most() -> None:
    ward = Ward()

    ended = ward.end_many(2 * MAX_BATCH + 1)
    await settle()

    assert ([MAX_BATCH, MAX_BATCH, 1], ended) == (ward.broker.sizes, ward.over)


async def test_an_end_that_spoils_its_commit_fails_alone() -> None:
    bad = a_task(status=S.RUNNING)
    ward = Ward(*[spoiled_by(bad)] * 4)
    first, _, last = ward.end(a_task(status=S.RUNNING)), ward.end(bad), ward.end(a_task(status=S.RUNNING))
    await settle()

    assert [3, 1, 1, 1] == ward.broker.sizes
    assert [bad, first, last] == ward.over
    assert [first.task_id, last.task_id] == [change.after.task_id for change in ward.notes.changes]
    assert [{"task_id": bad.task_id, "error": "ValueError"}] == ward.notes.of("recording_failed")


async def test_of_one_commit_only_what_has_moved_is_decided_again_and_only_what_broke_is_repeated() -> None:
    moved, broke, whole = (a_task(status=S.RUNNING) for _ in range(3))
    found = a_task(task_id=moved.task_id, status=S.RUNNING, lease=moved.lease, cancel_requested=True)
    answers: dict[TaskId, CommitAnswer] = {moved.task_id: Conflict(found), broke.task_id: Broken("half-way")}
    ward = Ward(lambda change: answers.get(change.after.task_id, Applied(change.after)))
    for task in (moved, broke, whole):
        ward.end(task, a_fault())
    await settle()

    first, second = ward.broker.batches
    assert (S.CANCELLED, found) == (second[0].after.status, second[0].before)
    assert first[1] is second[1]
    assert [whole, moved, broke] == ward.over


async def test_ends_go_through_while_others_wait_for_an_outage_to_pass() -> None:
    ward = Ward(down)
    early = ward.end(a_task(status=S.RUNNING))
    await settle()

    late = ward.end(a_task(status=S.RUNNING))
    await settle()
    assert [late] == ward.over
    await ward.clock.advance(timedelta(seconds=1))

    assert [late, early] == ward.over
    assert ward.broker.batches[0] == ward.broker.batches[2]


async def test_an_end_that_is_answered_in_an_unknown_way_keeps_neither_its_slot_nor_those_of_others() -> None:
    unknown = a_task(status=S.RUNNING)

    def answer(change: Change) -> Any:
        return "unknown" if change.after.task_id == unknown.task_id else applied(change)

    ward = Ward(answer)
    first, _, last = ward.end(a_task(status=S.RUNNING)), ward.end(unknown), ward.end(a_task(status=S.RUNNING))
    await settle()

    assert 3 == len(ward.over)
    assert [first.task_id, last.task_id] == [change.after.task_id for change in ward.notes.changes]
    assert [{"task_id": unknown.task_id, "error": "AssertionError"}] == ward.notes.of("recording_failed")


class Shaken(Notes):
    """An observer that raises, as none should."""

    def committed(self, *changes: Change) -> None:
        super().committed(*changes)
        raise ZeroDivisionError


async def test_ends_that_fail_when_they_are_told_of_keep_no_slot() -> None:
    ward = Ward(notes=Shaken())

    ended = ward.end_many(3)
    await settle()

    assert (ended, 3) == (ward.over, len(ward.notes.changes))
    assert ["ZeroDivisionError"] * 3 == [note["error"] for note in ward.notes.of("recording_failed")]


class Sparing(CountedIds):
    """Ids that fail once, as none should."""

    def token(self) -> Version:
        token = super().token()
        if token == "counted-token-1":
            raise ZeroDivisionError
        return token


async def test_an_end_that_cannot_be_decided_keeps_neither_its_slot_nor_those_of_others() -> None:
    ward = Ward(ids=Sparing())

    ended = ward.end_many(3)
    await settle()

    assert (ended, [2]) == (ward.over, ward.broker.sizes)
    assert [ended[0].task_id] == [note["task_id"] for note in ward.notes.of("recording_failed")]


async def test_what_was_let_go_of_is_told_of_to_nobody_and_what_ends_afterwards_is() -> None:
    ward = Ward(down)
    ward.end_many(1)
    await settle()
    ward.broker.go.clear()
    ward.end_many(2)
    await settle()
    ward.end_many(3)

    ward.settling.drop()
    ward.broker.go.set()
    await ward.clock.advance(timedelta(seconds=10))
    assert ([1, 2], [], []) == (ward.broker.sizes, ward.over, ward.notes.changes)

    assert ward.end_many(1) == await ended_of(ward)


async def ended_of(ward: Ward) -> list[Task]:
    await settle()
    return ward.over


STAGE: ContextVar[str] = ContextVar("STAGE", default="the worker's own")


async def test_ends_are_recorded_in_the_workers_own_context() -> None:
    seen: list[str] = []

    def look(change: Change) -> CommitAnswer:
        seen.append(STAGE.get())
        return applied(change)

    ward = Ward(look)

    async def handler() -> None:
        STAGE.set("a handler's")
        ward.end_many(1)

    await asyncio.create_task(handler())
    await settle()

    assert ["the worker's own"] == seen


async def test_what_ends_while_others_are_recorded_on_their_own_waits_for_whoever_comes_soon() -> None:
    ward = Ward()
    ward.broker.go.clear()
    first = ward.end_many(1)
    await settle()
    ward.settling.wait(lambda: None)

    late = ward.end_many(1)
    ward.broker.go.set()
    await settle()

    assert first == ward.over
    assert [task.lease for task in late] == ward.settling.leases
