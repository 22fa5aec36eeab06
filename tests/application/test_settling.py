"""An outcome is recorded, however long that takes."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import pairwise

import pytest
from msgspec.structs import replace

from dtq.application.settling import Settling
from dtq.domain.change import Change
from dtq.domain.delivery import FailurePolicy
from dtq.domain.errors import BrokerRefused, BrokerUnavailable
from dtq.domain.outcome import Outcome
from dtq.domain.retry import RetryPolicy
from dtq.domain.status import TaskStatus
from dtq.domain.task import Task, Version
from dtq.ports.answers import Applied, Broken, CommitAnswer, Conflict
from dtq.ports.environment import Chance
from tests.application.stage import CountedIds, MiddleChance, Notes, TickingClock
from tests.factories import a_fault, a_success, a_task

S = TaskStatus
POLICY = FailurePolicy()
MIDDLE = MiddleChance()


class SetChance:
    """Chance that always falls at the same share of the way."""

    def __init__(self, share: float) -> None:
        self._share = share

    def uniform(self, low: float, high: float) -> float:
        return low + self._share * (high - low)


class Desk:
    """A settling whose commits are answered as a test has it."""

    def __init__(
        self,
        *answers: Callable[[Change], CommitAnswer],
        policy: FailurePolicy = POLICY,
        chance: Chance = MIDDLE,
    ) -> None:
        self.clock = TickingClock()
        self.notes = Notes()
        self.sent: list[Change] = []
        self.outages = 0
        self._answers = list(answers)
        self.settling = Settling(
            self._commit,
            policy=policy,
            clock=self.clock,
            ids=CountedIds(),
            chance=chance,
            observer=self.notes,
            on_outage=self._on_outage,
        )

    async def settle(self, task: Task, outcome: Outcome) -> None:
        """Record an outcome, however long that takes."""
        assert task.lease is not None
        recorded = asyncio.Event()
        self.settling.settle(task, lease=task.lease, outcome=outcome, then=recorded.set)
        await recorded.wait()

    async def _commit(self, changes: Sequence[Change]) -> Sequence[CommitAnswer]:
        self.sent += changes
        return [self._answers.pop(0)(change) for change in changes]

    def _on_outage(self) -> None:
        self.outages += 1


def applied(change: Change) -> CommitAnswer:
    return Applied(change.after)


def broken(_: Change) -> CommitAnswer:
    return Broken("half-way")


def down(_: Change) -> CommitAnswer:
    raise BrokerUnavailable("down")


def conflict_with(task: Task | None) -> Callable[[Change], CommitAnswer]:
    return lambda _: Conflict(task)


async def test_a_finish_is_repeated_with_the_same_bytes_for_as_long_as_it_takes() -> None:
    desk, task = Desk(*[down] * 20, applied), a_task(status=S.RUNNING)

    settling = asyncio.ensure_future(desk.settle(task, a_success()))
    while not settling.done():
        await desk.clock.advance(desk.clock.next_timer() or timedelta())

    assert 1 == len({id(change) for change in desk.sent})
    assert (21, 20, 1) == (len(desk.sent), desk.outages, len(desk.notes.changes))
    assert 60 < desk.clock.monotonic() < 100


async def test_an_outage_after_the_broker_was_heard_begins_with_short_pauses_again() -> None:
    moments: list[float] = []

    def noted(answer: Callable[[Change], CommitAnswer]) -> Callable[[Change], CommitAnswer]:
        def note(change: Change) -> CommitAnswer:
            moments.append(desk.clock.monotonic())
            return answer(change)

        return note

    desk = Desk(*map(noted, [*[down] * 6, moved, down, applied]))
    settling = asyncio.ensure_future(desk.settle(a_task(status=S.RUNNING), a_success()))
    while not settling.done():
        await desk.clock.advance(desk.clock.next_timer() or timedelta())

    pauses = [later - earlier for earlier, later in pairwise(moments)]
    assert pauses[5] > 1
    assert pauses[-1] < 0.2


async def test_a_finish_that_always_stops_half_way_is_tried_again_later() -> None:
    desk, task = Desk(*[broken] * 5, applied), a_task(status=S.RUNNING)

    settling = asyncio.ensure_future(desk.settle(task, a_success()))
    while not settling.done():
        await desk.clock.advance(desk.clock.next_timer() or timedelta())

    assert (6, 2) == (len(desk.sent), len({change.after.version for change in desk.sent}))
    assert [S.SUCCEEDED] == desk.notes.steps(task.task_id)


async def test_a_finish_that_stops_half_way_for_a_minute_gives_its_slot_up_and_is_told_of() -> None:
    desk, task = Desk(*[broken] * 1000), a_task(status=S.RUNNING, version="its own")

    settling = asyncio.ensure_future(desk.settle(task, a_success()))
    while not settling.done():
        await desk.clock.advance(desk.clock.next_timer() or timedelta())
    await settling

    assert 60 <= desk.clock.monotonic() < 70
    (note,) = desk.notes.of("result_lost")
    assert (task.task_id, 1) == (note["task_id"], note["attempt"])
    assert "half-way" in note["reason"]
    assert [] == desk.notes.changes


async def test_an_outage_before_it_stops_half_way_does_not_count_toward_the_minute() -> None:
    desk, task = Desk(*[down] * 20, *[broken] * 10, applied), a_task(status=S.RUNNING, version="its own")

    settling = asyncio.ensure_future(desk.settle(task, a_success()))
    while not settling.done():
        await desk.clock.advance(desk.clock.next_timer() or timedelta())

    assert [S.SUCCEEDED] == desk.notes.steps(task.task_id)


def refused(_: Change) -> CommitAnswer:
    raise BrokerRefused("NOPERM this user may not do that, for now")


def moved(change: Change) -> CommitAnswer:
    """Answer as where somebody else changes the task again and again, and it stays this worker's own."""
    assert change.before is not None
    return Conflict(replace(change.before, version=Version(f"{change.before.version}+")))


@pytest.mark.parametrize("answer", [refused, moved])
async def test_a_finish_that_is_not_let_through_for_minutes_is_recorded_when_it_is(
    answer: Callable[[Change], CommitAnswer],
) -> None:
    def not_for_minutes(change: Change) -> CommitAnswer:
        return answer(change) if desk.clock.monotonic() < 180 else applied(change)

    desk, task = Desk(*[not_for_minutes] * 1000), a_task(status=S.RUNNING)

    settling = asyncio.ensure_future(desk.settle(task, a_success()))
    while not settling.done():
        await desk.clock.advance(desk.clock.next_timer() or timedelta())
    await settling

    assert ([S.SUCCEEDED], []) == (desk.notes.steps(task.task_id), desk.notes.of("result_lost"))
    assert 0 == desk.outages


async def test_a_conflict_is_decided_again_while_the_lease_is_still_the_tasks() -> None:
    task = a_task(status=S.RUNNING)
    cancelled = a_task(task_id=task.task_id, status=S.RUNNING, lease=task.lease, cancel_requested=True)
    desk = Desk(lambda _: Conflict(cancelled), applied)

    await desk.settle(task, a_fault())

    assert [S.RETRYING, S.CANCELLED] == [change.after.status for change in desk.sent]


async def test_what_belongs_to_another_execution_is_dropped() -> None:
    for found in (None, a_task(status=S.RUNNING), a_task(status=S.SUCCEEDED)):
        task = a_task(status=S.RUNNING)
        desk = Desk(conflict_with(found))

        await desk.settle(task, a_success())

        assert 1 == len(desk.sent)
        assert [{"task_id": task.task_id, "attempt": 1, "reason": "stale"}] == desk.notes.of("result_dropped")
        assert [] == desk.notes.changes


async def test_attempts_are_counted_by_how_they_ended() -> None:
    for outcome, expected in ((a_success(), (1, 0, 0)), (a_fault(), (1, 0, 1)), (a_fault(retryable=False), (1, 1, 0))):
        desk, task = Desk(applied), a_task(status=S.RUNNING)

        await desk.settle(task, outcome)

        tally = desk.settling.tally
        assert expected == (tally.processed, tally.failed, tally.retried)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
async def test_retries_are_spread_evenly_between_the_bounds_of_their_jitter(share: float) -> None:
    retry = RetryPolicy(base=timedelta(seconds=10), jitter=0.2)
    desk, task = Desk(applied, policy=FailurePolicy(retry=retry), chance=SetChance(share)), a_task(status=S.RUNNING)

    await desk.settle(task, a_fault())

    (change,) = desk.sent
    wait = change.after.available_at - desk.clock.now()
    assert timedelta(seconds=8) + share * timedelta(seconds=4) == wait
