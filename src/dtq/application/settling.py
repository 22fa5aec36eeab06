"""Recording how an attempt ended, however long the broker takes to listen."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from msgspec import Struct

from dtq.application.backoff import Backoff
from dtq.application.transact import Settled, Vanished, transact
from dtq.domain.change import Change
from dtq.domain.decision import Drop, DropReason
from dtq.domain.delivery import FailurePolicy, finish
from dtq.domain.errors import BrokerUnavailable, StepStopped, is_outage
from dtq.domain.outcome import Outcome
from dtq.domain.status import TaskStatus
from dtq.domain.task import LeaseToken, Task
from dtq.domain.text import class_name, text_of
from dtq.ports.answers import CommitAnswer, Refused
from dtq.ports.environment import Chance, Clock, Ids
from dtq.ports.events import Observer

GIVEN_UP: Final = timedelta(minutes=1)
"""For how long a step is repeated that the broker stops half-way each time: its record, or a key of it, is spoiled.

Then the slot is free again, and the entry goes the way of one whose worker is lost.
"""


class Tally(Struct):
    """What a worker has done since it began."""

    processed: int = 0
    failed: int = 0
    retried: int = 0

    def count(self, status: TaskStatus) -> None:
        """Count an attempt that left its task in *status*."""
        self.processed += 1
        self.failed += status in {TaskStatus.FAILED, TaskStatus.DEAD_LETTERED}
        self.retried += status is TaskStatus.RETRYING


class Settling:
    """Ends tasks as the domain decides. What another worker has taken over is dropped without a word to the broker."""

    def __init__(
        self,
        commit: Callable[[Change], Awaitable[CommitAnswer]],
        *,
        policy: FailurePolicy,
        clock: Clock,
        ids: Ids,
        chance: Chance,
        observer: Observer,
        on_outage: Callable[[], None],
    ) -> None:
        self._commit = commit
        self._policy = policy
        self._clock = clock
        self._ids = ids
        self._chance = chance
        self._observer = observer
        self._on_outage = on_outage
        self.tally = Tally()

    async def settle(self, task: Task, *, lease: LeaseToken, outcome: Outcome) -> None:
        """Record *outcome*; return once it is recorded, or found to be none of this worker's business."""

        def decide(found: Task) -> Change | Drop:
            jitter = self._chance.uniform(-self._policy.retry.jitter, self._policy.retry.jitter)
            return finish(
                found,
                lease=lease,
                outcome=outcome,
                now=self._clock.now(),
                token=self._ids.token(),
                policy=self._policy,
                jitter=jitter,
            )

        try:
            answer = await self._transact(task, decide)
        except StepStopped as error:
            self._observer.noticed("result_lost", task_id=task.task_id, attempt=task.attempt, reason=text_of(error))
            return
        if isinstance(answer, Settled):
            self.tally.count(answer.change.after.status)
            self._observer.committed(answer.change)
        else:
            reason = answer.reason if isinstance(answer, Drop) else DropReason.STALE
            self._observer.noticed("result_dropped", task_id=task.task_id, attempt=task.attempt, reason=reason)

    async def _transact(
        self, task: Task, decide: Callable[[Task], Change | Drop]
    ) -> Settled | Refused | Vanished | Drop:
        """Decide and commit. Raises StepStopped where that cannot be done for GIVEN_UP although the broker is there."""
        backoff = Backoff(self._chance)
        ends_at: float | None = None
        while True:
            try:
                return await transact(task, decide=decide, commit=self._stubbornly)
            except BrokerUnavailable as error:
                # not an outage, which is waited out below: the task does not stand still, or its step breaks
                now = self._clock.monotonic()
                ends_at = ends_at or now + GIVEN_UP.total_seconds()
                if isinstance(error, StepStopped) and now >= ends_at:
                    raise
                await self._wait(error, backoff)

    async def _stubbornly(self, change: Change) -> CommitAnswer:
        """Commit *change*, the same again and again while the broker is out of reach."""
        backoff = Backoff(self._chance)
        while True:
            try:
                return await self._commit(change)
            except BrokerUnavailable as error:
                if is_outage(error):
                    self._on_outage()
                await self._wait(error, backoff)

    async def _wait(self, error: BrokerUnavailable, backoff: Backoff) -> None:
        self._observer.noticed("commit_repeated", error=class_name(error), reason=text_of(error))
        await self._clock.sleep(backoff.pause())
