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
from dtq.domain.text import class_name
from dtq.ports.broker import HeldLease
from dtq.ports.environment import Clock
from dtq.ports.events import Observer


class Running:
    """Runs each started task in a slot, records the outcome, and has the slot empty when the handler has ended, too."""

    def __init__(
        self,
        in_flight: InFlight,
        *,
        executor: Executor,
        settling: Settling,
        grace: timedelta,
        clock: Clock,
        observer: Observer,
    ) -> None:
        self._in_flight = in_flight
        self._executor = executor
        self._settling = settling
        self._grace = grace
        self._clock = clock
        self._observer = observer
        self._recorders: dict[Job, asyncio.Task[None]] = {}

    def begin(self, task: Task, lease: HeldLease) -> None:
        """Fill a slot with a task that was just started under *lease*."""
        until = self._clock.monotonic() + (task.timeout + self._grace).total_seconds()
        job = Job(task, hold=Hold(lease=lease, until=until), attempt=self._executor.begin(task))
        self._in_flight.add(job)
        job.attempt.outcome.add_done_callback(partial(self._decided, job))
        job.attempt.ended.add_done_callback(lambda _: self._in_flight.remove(job))

    async def abandon(self) -> int:
        """Stop whatever is active, record nothing more, and return how many attempts that were."""
        jobs = self._in_flight.active()
        for job in jobs:
            job.attempt.stop(StopReason.DRAIN)
        if jobs:
            await asyncio.wait({job.attempt.outcome for job in jobs})
        for job in self._in_flight.active():
            # its outcome is known, but the broker does not take it
            self._recorders[job].cancel()
            self._in_flight.record(job)
        return len(jobs)

    def drop(self) -> None:
        """Let go of everything at once, without a word to anybody: the worker ends."""
        for job in self._in_flight.active():
            job.attempt.stop(StopReason.DRAIN)
            job.attempt.outcome.cancel()
        for recorder in self._recorders.values():
            recorder.cancel()

    def _decided(self, job: Job, decided: "asyncio.Future[Outcome | None]") -> None:
        outcome = None if decided.cancelled() else decided.result()
        if outcome is None:
            self._in_flight.record(job)
            return
        recorder = decided.get_loop().create_task(self._record(job, outcome), name=f"record-{job.task.task_id}")
        self._recorders[job] = recorder
        recorder.add_done_callback(lambda _: self._recorders.pop(job))

    async def _record(self, job: Job, outcome: Outcome) -> None:
        try:
            await self._settling.settle(job.task, lease=job.lease, outcome=outcome)
        except Exception as error:  # noqa: BLE001 - an unknown fault in recording must not keep the lease for ever
            self._observer.noticed("recording_failed", task_id=job.task.task_id, error=class_name(error))
        self._in_flight.record(job)
