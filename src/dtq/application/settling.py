"""Recording how attempts ended, however long the broker takes to listen."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from msgspec import Struct

from dtq.application.backoff import Backoff
from dtq.application.group_commit import MAX_BATCH, Send, sent
from dtq.application.transact import Settled, Step
from dtq.domain.change import Change
from dtq.domain.decision import Drop, DropReason
from dtq.domain.delivery import FailurePolicy, finish
from dtq.domain.errors import BrokerUnavailable, StepStopped, is_outage
from dtq.domain.outcome import Outcome, Succeeded
from dtq.domain.status import TaskStatus
from dtq.domain.task import LeaseToken, Task
from dtq.domain.text import class_name, text_of
from dtq.ports.answers import CommitAnswer
from dtq.ports.broker import Fetch
from dtq.ports.environment import Chance, Clock, Ids
from dtq.ports.events import Observer

GIVEN_UP: Final = timedelta(minutes=1)
"""For how long a step is repeated that the broker stops half-way each time: its record, or a key of it, is spoiled.

Then the slot is free again, and the entry goes the way of one whose worker is lost.
"""


# named here, since to look up a member of an enumeration takes longer than to compare it
_GIVEN_UP_IN: Final = frozenset({TaskStatus.FAILED, TaskStatus.DEAD_LETTERED})
_RETRYING: Final = TaskStatus.RETRYING


class Tally(Struct):
    """What a worker has done since it began."""

    processed: int = 0
    failed: int = 0
    retried: int = 0

    def count(self, status: TaskStatus) -> None:
        """Count an attempt that left its task in *status*."""
        self.processed += 1
        self.failed += status in _GIVEN_UP_IN
        self.retried += status is _RETRYING


class _Ending(Struct):
    """The end of one attempt, on its way to be recorded.

    ``outage`` is of the broker's silence about one change, ``backoff`` of a step that is there and cannot be made.
    """

    task: Task
    lease: LeaseToken
    outcome: Outcome
    then: Callable[[], None]
    step: Step
    outage: Backoff | None = None
    backoff: Backoff | None = None
    ends_at: float = 0.0


class Settling:
    """Ends tasks as the domain decides. What another worker has taken over is dropped without a word to the broker.

    Whatever has ended goes in one commit, of which one is under way at a time; what ends meanwhile goes with the next.
    Where somebody is about to fetch, it waits to be taken along (ADR 96).
    """

    def __init__(
        self,
        commit: Send[Change, CommitAnswer],
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
        self._waiting: list[_Ending] = []
        self._context = copy_context()
        self._rounds: asyncio.Task[None] | None = None
        self._on_wait: Callable[[], None] | None = None
        # ends where everything is dropped: what comes back from before is nobody's any more
        self._era = 0
        self.tally = Tally()

    def settle(self, task: Task, *, lease: LeaseToken, outcome: Outcome, then: Callable[[], None]) -> None:
        """Record *outcome*; call *then* once it is recorded, or found to be none of this worker's business.

        Also called where recording fails in an unknown way: that must not keep the lease for ever.
        """
        self._add(_Ending(task, lease, outcome, then, Step(task)), self._era)

    @property
    def leases(self) -> Sequence[LeaseToken]:
        """The leases of what would be taken along now."""
        return [ending.lease for ending in self._waiting[:MAX_BATCH]]

    def wait(self, on_wait: Callable[[], None]) -> None:
        """Let what ends from now on wait to be taken along, and call *on_wait* for it."""
        self._on_wait = on_wait

    def go(self) -> None:
        """Let what has ended, and what ends from now on, be recorded without waiting for anybody."""
        self._on_wait = None
        self._begin()

    async def take_along(self, send: Callable[[Sequence[Change]], Awaitable[Fetch]], *, at_most: int) -> Fetch:
        """Have *at_most* so much of what waits recorded by the request that *send* makes, and return what that brought.

        Raises what *send* raises; then it is recorded later.
        """
        at_most = min(at_most, MAX_BATCH)
        batch, self._waiting = self._waiting[:at_most], self._waiting[at_most:]
        decided = self._decide(batch)
        era = self._era
        try:
            fetched = await send([change for _, change in decided])
        except BrokerUnavailable as error:
            self._hear_all(decided, [error] * len(decided), era)
            raise
        except (Exception, asyncio.CancelledError):
            # whichever of them spoilt it is found where each can be sent alone
            for ending, _ in decided:
                self._add(ending, era)
            raise
        self._hear_all(decided, fetched.answers, era)
        return fetched

    def drop(self) -> None:
        """Let go of whatever is not recorded yet, without a word to anybody; what was sent may still be made real."""
        self._era += 1
        self._waiting.clear()

    def _add(self, ending: _Ending, era: int) -> None:
        if era != self._era:
            return
        self._waiting.append(ending)
        if self._on_wait is None:
            self._begin()
        else:
            self._on_wait()

    def _begin(self) -> None:
        if self._waiting and self._rounds is None:
            rounds = self._settle_all()
            # not in that of the handler that happens to end first
            self._rounds = asyncio.get_running_loop().create_task(rounds, name="settle", context=self._context.copy())

    async def _settle_all(self) -> None:
        try:
            while self._waiting and self._on_wait is None:
                batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
                await self._settle(batch)
        finally:
            self._rounds = None

    async def _settle(self, batch: Sequence[_Ending]) -> None:
        """Decide about each ending and commit that, all in one request."""
        decided = self._decide(batch)
        if decided:
            era = self._era
            answers = await sent([change for _, change in decided], send=self._commit)
            self._hear_all(decided, answers, era)

    def _decide(self, batch: Sequence[_Ending]) -> Sequence[tuple[_Ending, Change]]:
        """Decide about each ending, and return those that there is something to commit for."""
        now = self._clock.now()
        decided = [(ending, self._decided(ending, now=now)) for ending in batch]
        return [(ending, change) for ending, change in decided if change is not None]

    def _hear_all(
        self, decided: Sequence[tuple[_Ending, Change]], answers: Sequence[CommitAnswer | Exception], era: int
    ) -> None:
        if era != self._era:
            return
        made: list[tuple[_Ending, Change]] = []
        for (ending, change), answer in zip(decided, answers, strict=True):
            try:
                if self._hear(ending, change, answer):
                    made.append((ending, change))
            except Exception as error:  # noqa: BLE001 - one that fails in an unknown way must not stop the others
                self._failed(ending, error)
        if made:
            self._tell(made)

    def _tell(self, made: Sequence[tuple[_Ending, Change]]) -> None:
        """Tell of what is recorded, of all at once, and let go of it."""
        try:
            self._observer.committed(*[change for _, change in made])
        except Exception as error:  # noqa: BLE001 - the same
            for ending, _ in made:
                self._failed(ending, error)
        else:
            for ending, _ in made:
                ending.then()

    def _decided(self, ending: _Ending, *, now: datetime) -> Change | None:
        """Return what is to be committed for an ending, or None where it is over."""
        step = ending.step
        if step.change is not None:
            return step.change
        try:
            decision = finish(
                step.task,
                lease=ending.lease,
                outcome=ending.outcome,
                now=now,
                token=self._ids.token(),
                policy=self._policy,
                # what has succeeded is not repeated
                jitter=0.0 if isinstance(ending.outcome, Succeeded) else self._jitter(),
            )
        except Exception as error:  # noqa: BLE001 - the same
            self._failed(ending, error)
            return None
        if isinstance(decision, Drop):
            self._dropped(ending, decision.reason)
            return None
        step.decided(decision)
        return decision

    def _jitter(self) -> float:
        jitter = self._policy.retry.jitter
        return self._chance.uniform(-jitter, jitter)

    def _hear(self, ending: _Ending, change: Change, answer: CommitAnswer | Exception) -> bool:
        """Take note of what became of a change; tell whether it was made."""
        if isinstance(answer, Exception):
            self._hear_error(ending, answer)
            return False
        ending.outage = None
        try:
            made = ending.step.hear(answer, change=change)
        except BrokerUnavailable as error:
            self._begin_again(ending, error)
            return False
        if isinstance(made, Settled):
            self.tally.count(change.after.status)
            return True
        if made is None:
            self._add(ending, self._era)
        else:
            self._dropped(ending, DropReason.STALE)
        return False

    def _hear_error(self, ending: _Ending, error: Exception) -> None:
        # isinstance asks a stranger's __class__, which may raise
        if not issubclass(type(error), BrokerUnavailable):
            self._failed(ending, error)
            return
        if is_outage(error):
            self._on_outage()
        ending.outage = ending.outage or Backoff(self._chance)
        self._postpone(ending, error, ending.outage)

    def _begin_again(self, ending: _Ending, error: BrokerUnavailable) -> None:
        """Decide anew, a little later; this is no outage: the task does not stand still, or its step breaks."""
        now = self._clock.monotonic()
        ending.ends_at = ending.ends_at or now + GIVEN_UP.total_seconds()
        if isinstance(error, StepStopped) and now >= ending.ends_at:
            task = ending.task
            self._observer.noticed("result_lost", task_id=task.task_id, attempt=task.attempt, reason=text_of(error))
            ending.then()
            return
        ending.step = Step(ending.task)
        ending.backoff = ending.backoff or Backoff(self._chance)
        self._postpone(ending, error, ending.backoff)

    def _postpone(self, ending: _Ending, error: Exception, backoff: Backoff) -> None:
        self._observer.noticed("commit_repeated", error=class_name(error), reason=text_of(error))
        self._clock.call_later(backoff.pause(), partial(self._add, ending, self._era))

    def _dropped(self, ending: _Ending, reason: DropReason) -> None:
        task = ending.task
        self._observer.noticed("result_dropped", task_id=task.task_id, attempt=task.attempt, reason=reason)
        ending.then()

    def _failed(self, ending: _Ending, error: Exception) -> None:
        # an unknown fault in recording must not keep the lease for ever
        self._observer.noticed("recording_failed", task_id=ending.task.task_id, error=class_name(error))
        ending.then()
