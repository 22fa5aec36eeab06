"""What the broker says of the leases of running tasks, and what follows from it."""

from collections.abc import Sequence
from typing import Final

from dtq.application.execution import StopReason
from dtq.application.handover import Hold
from dtq.application.in_flight import InFlight
from dtq.domain.task import TaskId, WorkerId
from dtq.ports.broker import HeldLease, LeaseReport, WorkQueue
from dtq.ports.events import Observer

MAX_EXTENSIONS: Final = 100
"""The most leases in one request."""


class Leases:
    """Stops the handlers of tasks whose lease is lost or whose cancellation is asked for."""

    def __init__(self, broker: WorkQueue, *, worker: WorkerId, in_flight: InFlight, observer: Observer) -> None:
        self._broker = broker
        self._worker = worker
        self._in_flight = in_flight
        self._observer = observer

    async def extend_all(self) -> None:
        """Extend every lease from the main loop, beside the beat: after an outage, before anything else."""
        self.note(await extend(self._broker, self._in_flight.holds, worker=self._worker))

    async def check(self, task_id: TaskId) -> None:
        """Ask for the cancellation of one task at once, as its signal advises."""
        self.note(await extend(self._broker, self._in_flight.holds_of(task_id), worker=self._worker))

    def note(self, reports: Sequence[LeaseReport]) -> None:
        """Act on reports; those of unknown leases are old, and ignored."""
        for report in reports:
            job = self._in_flight.active_of(report.lease)
            if job is None or job.attempt.is_decided:
                continue
            if not report.kept:
                self._observer.noticed("lease_lost", task_id=job.task.task_id, attempt=job.task.attempt)
                job.attempt.stop(StopReason.LOST)
            elif report.cancel_requested:
                job.attempt.stop(StopReason.CANCEL)


async def extend(broker: WorkQueue, holds: Sequence[Hold], *, worker: WorkerId) -> Sequence[LeaseReport]:
    """Extend the leases of *holds*, in requests of bounded size."""
    leases: Sequence[HeldLease] = [hold.lease for hold in holds]
    reports: list[LeaseReport] = []
    for first in range(0, len(leases), MAX_EXTENSIONS):
        reports += await broker.extend(leases[first : first + MAX_EXTENSIONS], worker=worker)
    return reports
