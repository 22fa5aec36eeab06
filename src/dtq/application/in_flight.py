"""The slots of a worker and what is in them."""

from collections.abc import Callable, Sequence

from dtq.application.execution import Attempt
from dtq.application.handover import Hold
from dtq.domain.task import LeaseToken, Receipt, Task, TaskId


class Job:
    """A task that this worker has started, and the lease under which it runs."""

    def __init__(self, task: Task, *, hold: Hold, attempt: Attempt) -> None:
        self.task = task
        self.hold = hold
        self.attempt = attempt

    @property
    def lease(self) -> LeaseToken:
        """The lease of this execution."""
        return self.hold.lease.lease


class InFlight:
    """As many slots as the worker's concurrency; *on_change* hears of each change.

    A job is active until its attempt is recorded or given up; its slot stays taken until its handler has ended.
    """

    def __init__(self, *, capacity: int, on_change: Callable[[], None]) -> None:
        self._capacity = capacity
        self._on_change = on_change
        self._jobs: dict[LeaseToken, Job] = {}
        self._active: dict[LeaseToken, Hold] = {}
        self._receipts: set[Receipt] = set()

    @property
    def free(self) -> int:
        """How many slots are empty."""
        return self._capacity - len(self._jobs)

    @property
    def holds(self) -> tuple[Hold, ...]:
        """The leases to keep: one for each active job."""
        return tuple(self._active.values())

    @property
    def is_stuck(self) -> bool:
        """Whether handlers that cannot be stopped, and whose attempts are over, take every slot."""
        return not self.free and not self._active

    def active(self) -> Sequence[Job]:
        """Return the active jobs."""
        return [self._jobs[lease] for lease in self._active]

    def active_of(self, lease: LeaseToken) -> Job | None:
        """Return the active job that runs under *lease*, or None."""
        return self._jobs[lease] if lease in self._active else None

    def holds_of(self, task_id: TaskId) -> Sequence[Hold]:
        """Return the leases under which a task is active here."""
        return [hold for hold in self._active.values() if hold.lease.task_id == task_id]

    def owns(self, receipt: Receipt) -> bool:
        """Tell whether an entry belongs to an active job."""
        return receipt in self._receipts

    def add(self, job: Job) -> None:
        """Fill a slot."""
        self._jobs[job.lease] = job
        self._active[job.lease] = job.hold
        self._receipts.add(job.hold.lease.receipt)
        self._on_change()

    def record(self, job: Job) -> None:
        """Take note that the attempt of *job* is over."""
        self._active.pop(job.lease, None)
        self._receipts.discard(job.hold.lease.receipt)
        self._on_change()

    def remove(self, job: Job) -> None:
        """Empty the slot of *job*, whose handler has ended."""
        self._jobs.pop(job.lease, None)
        self._on_change()
