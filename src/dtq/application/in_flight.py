"""The slots of a worker, what is in them, and what has left them and is yet to be recorded."""

from collections.abc import Callable, Sequence

from dtq.application.execution import Attempt
from dtq.application.handover import Hold
from dtq.domain.task import LeaseToken, Receipt, Task, TaskId


class Job:
    """A task that this worker has started, and the lease under which it runs."""

    __slots__ = ("attempt", "hold", "lease", "task")

    def __init__(self, task: Task, *, hold: Hold, attempt: Attempt) -> None:
        self.task = task
        self.hold = hold
        self.attempt = attempt
        self.lease: LeaseToken = hold.lease.lease


class InFlight:
    """As many slots as the worker's concurrency; *on_change* hears when a slot or a record is done with.

    A job is active until its attempt is recorded or given up; its slot is taken until its handler has ended. So the
    next handler runs while the end of the last one is written down, for as many ends as there are slots.
    """

    def __init__(self, *, capacity: int, on_change: Callable[[], None]) -> None:
        self._capacity = capacity
        self._on_change = on_change
        self._slots: set[Job] = set()
        self._active: dict[LeaseToken, Job] = {}
        self._unrecorded: set[Job] = set()
        self._receipts: set[Receipt] = set()

    @property
    def free(self) -> int:
        """How many tasks may be begun: one for each empty slot, and none while more ends than slots are unrecorded."""
        return self._capacity - len(self._slots) if len(self._unrecorded) <= self._capacity else 0

    @property
    def owned(self) -> int:
        """How many jobs are active; may be asked from any thread."""
        return len(self._active)

    @property
    def holds(self) -> tuple[Hold, ...]:
        """The leases to keep: one for each active job; may be asked from any thread."""
        # a dict is copied in one go, and walked with other threads in between
        return tuple([job.hold for job in self._active.copy().values()])

    @property
    def is_stuck(self) -> bool:
        """Whether handlers that cannot be stopped, and whose attempts are over, take every slot."""
        return not self._active and len(self._slots) >= self._capacity

    @property
    def is_idle(self) -> bool:
        """Whether no handler runs, and no attempt is yet to be recorded."""
        return not self._active and not self._slots

    def active(self) -> Sequence[Job]:
        """Return the active jobs."""
        return list(self._active.values())

    def active_of(self, lease: LeaseToken) -> Job | None:
        """Return the active job that runs under *lease*, or None."""
        return self._active.get(lease)

    def holds_of(self, task_id: TaskId) -> Sequence[Hold]:
        """Return the leases under which a task is active here."""
        return [job.hold for job in self._active.values() if job.task.task_id == task_id]

    def owns(self, receipt: Receipt) -> bool:
        """Tell whether an entry belongs to an active job."""
        return receipt in self._receipts

    def add(self, job: Job) -> None:
        """Fill a slot."""
        self._slots.add(job)
        self._active[job.lease] = job
        self._receipts.add(job.hold.lease.receipt)

    def record(self, job: Job) -> None:
        """Take note that the attempt of *job* is over."""
        if self._active.pop(job.lease, None) is not None:
            self._unrecorded.discard(job)
            self._receipts.discard(job.hold.lease.receipt)
        self._on_change()

    def remove(self, job: Job) -> None:
        """Empty the slot of *job*, whose handler has ended."""
        self._slots.discard(job)
        if job.lease in self._active:
            self._unrecorded.add(job)
        self._on_change()
