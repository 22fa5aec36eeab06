"""What an operator decides about one worker, as plain values."""

from datetime import timedelta
from enum import IntEnum

from msgspec import Struct

from dtq.domain.admission import DEFAULT_QUEUE
from dtq.domain.delivery import FailurePolicy
from dtq.domain.task import QueueName, WorkerId


class ExitCode(IntEnum):
    """How a worker's process ends."""

    DRAINED = 0
    """Everything it had started is finished."""
    HUNG = 70
    """Its main loop stood still past all deadlines, so that it gave its leases up, or for a minute without a task."""
    WORK_LEFT = 75
    """It handed started work back, or handlers that nobody can stop hold all of its slots: start it again."""


class WorkerSettings(Struct, frozen=True, kw_only=True):
    """One worker: who it is, what it serves, and how patient it is."""

    worker_id: WorkerId
    hostname: str
    queue: QueueName = DEFAULT_QUEUE
    concurrency: int = 4
    visibility_timeout: timedelta = timedelta(seconds=30)
    heartbeat_interval: timedelta = timedelta(seconds=5)
    drain_timeout: timedelta = timedelta(seconds=30)
    result_max_bytes: int = 8192
    failure_policy: FailurePolicy = FailurePolicy()
    keep_alive_after: timedelta = timedelta(hours=12)
    """How long an entry waits before the leader renews its task's lifetimes: half the idempotency retention."""

    @property
    def beat_interval(self) -> timedelta:
        """How often leases are extended."""
        return min(self.heartbeat_interval, timedelta(seconds=1))

    @property
    def grace(self) -> timedelta:
        """How long past its deadline a task keeps its lease: time to notice, and to record it."""
        return timedelta(seconds=1) + self.beat_interval
