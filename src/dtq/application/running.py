"""From a started task to its recorded end: what happens in one slot."""

import asyncio
from datetime import timedelta
from functools import partial

from dtq.application.execution import Executor, StopReason
from dtq.application.handover import Hold
from dtq.application.in_flight import InFlight, Job
from dtq.application.settling import Settling
from dtq.domain.outcome import Outcome
from dtq.domain.task import Task
from dtq.ports.broker import HeldLease
from dtq.ports.environment import Clock


class Running:
    """Runs each started task in a slot, records the outcome, and has the slot empty when the handler has ended, too."""

    def __init__(
        self, in_flight: InFlight, *, executor: Executor, settling: Settling, grace: timedelta, clock: Clock
    ) -> None:
        self._in_flight = in_flight
        self._executor = executor
        self._settling = settling
        self._grace = grace.total_seconds()
        self._clock = clock
        self._decision: asyncio.Future[None] | None = None

    def begin(self, task: Task, lease: HeldLease) -> None:
        """Fill a slot with a task that was just started under *lease*."""
        until = self._clock.monotonic() + task.timeout.total_seconds() + self._grace
        job = Job(task, hold=Hold(lease=lease, until=until))
        job.attempt = self._executor.begin(
            task, on_decided=partial(self._decided, job), on_ended=partial(self._in_flight.end, job)
        )
        self._in_flight.add(job)

    async def abandon(self) -> int:
        """Stop whatever is active, record nothing more, and return how many attempts that were."""
        jobs = self._in_flight.active()
        for job in jobs:
            job.attempt.stop(StopReason.DRAIN)
        while not all(job.attempt.is_decided for job in jobs):
            self._decision = asyncio.get_running_loop().create_future()
            await self._decision
        # their outcomes are known, but the broker does not take them
        self._let_go()
        return len(jobs)

    def drop(self) -> None:
        """Let go of everything at once, without a word to anybody: the worker ends."""
        for job in self._in_flight.active():
            job.attempt.stop(StopReason.DRAIN)
        self._let_go()

    def _let_go(self) -> None:
        self._settling.drop()
        for job in self._in_flight.active():
            self._in_flight.record(job)

    def _decided(self, job: Job, outcome: Outcome | None) -> None:
        if outcome is None:
            self._in_flight.record(job)
        else:
            self._settling.settle(job.task, lease=job.lease, outcome=outcome, then=partial(self._in_flight.record, job))
        if self._decision is not None and not self._decision.done():
            self._decision.set_result(None)
