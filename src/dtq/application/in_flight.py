"""The slots of a worker and what is in them."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from dtq.application.execution import Attempt
from dtq.application.handover import Hold
from dtq.domain.task import LeaseToken, Receipt, Task, TaskId


class Job:
    """A task that this worker has started, and the lease under which it runs."""

    __slots__ = ("attempt", "has_ended", "hold", "lease", "task")

    attempt: Attempt

    def __init__(self, task: Task, *, hold: Hold) -> None:
        self.task = task
        self.hold = hold
        self.has_ended = False
        self.lease: LeaseToken = hold.lease.lease


class InFlight:
    """As many slots as the worker's concurrency; *on_change* hears when a slot or a record is done with.

    *on_stuck* hears when handlers that cannot be stopped have come to take every slot.
    A job is active until its attempt is recorded or given up; its slot stays taken until its handler has ended, too.
    """

    def __init__(self, *, capacity: int, on_change: Callable[[], None], on_stuck: Callable[[], None]) -> None:
        self.capacity: Final = capacity
        self._on_change = on_change
        self._on_stuck = on_stuck
        self._jobs: set[Job] = set()
        self._active: dict[LeaseToken, Job] = {}
        self._receipts: set[Receipt] = set()
        self.owns: Final[Callable[[Receipt], bool]] = self._receipts.__contains__
        """Tells whether an entry belongs to an active job; the set's own, since it is asked for each entry."""

    @property
    def free(self) -> int:
        """How many slots are empty."""
        return self.capacity - len(self._jobs)

    def free_without(self, leases: Iterable[LeaseToken]) -> int:
        """How many slots are empty once the attempts under *leases* are recorded."""
        jobs = [self._active[lease] for lease in leases if lease in self._active]
        return self.free + sum([job.has_ended for job in jobs])

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
        return not self._active and not self.free

    @property
    def jobs(self) -> Collection[Job]:
        """What is in the slots, as of now."""
        return frozenset(self._jobs)

    def active(self) -> Sequence[Job]:
        """Return the active jobs."""
        return list(self._active.values())

    def active_of(self, lease: LeaseToken) -> Job | None:
        """Return the active job that runs under *lease*, or None."""
        return self._active.get(lease)

    def holds_of(self, task_id: TaskId) -> Sequence[Hold]:
        """Return the leases under which a task is active here."""
        return [job.hold for job in self._active.values() if job.task.task_id == task_id]

    def add(self, job: Job) -> None:
        """Fill a slot."""
        self._jobs.add(job)
        self._active[job.lease] = job
        self._receipts.add(job.hold.lease.receipt)

    def record(self, job: Job) -> None:
        """Take note that the attempt of *job* is over; empty its slot, if its handler has ended, too."""
        if self._active.pop(job.lease, None) is not None:
            self._receipts.discard(job.hold.lease.receipt)
        if job.has_ended:
            self._jobs.discard(job)
        elif self.is_stuck:
            self._on_stuck()
        self._on_change()

    def end(self, job: Job) -> None:
        """Take note that the handler of *job* has ended; empty its slot, if its attempt is over, too."""
        job.has_ended = True
        if job.lease not in self._active:
            self.record(job)
