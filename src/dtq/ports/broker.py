"""Where tasks live: the store, the ready queues and the schedule, which share one atomic step.

Any call may raise BrokerUnavailable, or its child OutcomeUnknown where the request may have been carried out.
A task that comes back from here has its payload only where the docstring says so.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from msgspec import Struct

from dtq.domain.admission import BrokerLimits
from dtq.domain.change import Change
from dtq.domain.delivery import Claim, start_unseen
from dtq.domain.status import TaskStatus
from dtq.domain.task import LeaseToken, QueueName, Receipt, Task, TaskId, Version, WorkerId
from dtq.ports.answers import Admission, CommitAnswer, CreateAnswer


class Delivery(Struct, frozen=True, kw_only=True):
    """One entry that a worker has read.

    ``fields`` are the entry's own, payload included. ``task`` is the stored task with the entry's payload, None where
    its record is gone. ``cancelled`` tells whether the task is marked as cancelled, which counts only then.
    ``started`` is the start that an offer made of it, and ``task`` what it was before.
    """

    receipt: Receipt
    fields: Mapping[str, str]
    task: Task | None
    cancelled: bool = False
    started: Change | None = None


class Offer(Struct, frozen=True):
    """What one task may be started with that its worker has not seen: the lease, and the token of the step."""

    lease: LeaseToken
    token: Version


class Offers(Struct, frozen=True, kw_only=True):
    """The starts that are offered to whatever a worker takes next, decided as of one moment; each serves one task."""

    at: datetime
    starts: Sequence[Offer]

    def start(self, task: Task, *, number: int, receipt: Receipt, worker: WorkerId) -> Change | None:
        """Decide what the offer of this number, counted from 0, makes of a task; None where it starts nothing."""
        offer = self.starts[number]
        claim = Claim(worker=worker, lease=offer.lease, receipt=receipt)
        return start_unseen(task, claim=claim, now=self.at, token=offer.token)


class UnreadableEntry(Struct, frozen=True):
    """An entry whose task has a record, but none that can be read: nobody can run it, and nobody may drop it."""

    receipt: Receipt
    reason: str


class Fetch(Struct, frozen=True, kw_only=True):
    """What one sweep brought: deliveries, highest priority first, and the broker's time.

    ``faults`` names each priority that could not be read, with the reason; what others gave is in ``deliveries``.
    ``unreadable`` are the entries that were taken like a delivery, and whose task's record cannot be read.
    ``answers`` has one for each change that was to be made before.
    """

    deliveries: Sequence[Delivery]
    now: datetime
    paused: bool = False
    faults: Sequence[str] = ()
    unreadable: Sequence[UnreadableEntry] = ()
    answers: Sequence[CommitAnswer] = ()


class HeldLease(Struct, frozen=True, kw_only=True):
    """An execution that its worker wants to keep."""

    task_id: TaskId
    receipt: Receipt
    lease: LeaseToken


class LeaseReport(Struct, frozen=True, kw_only=True):
    """What became of a lease: still the task's own or lost, and whether its cancellation is asked for."""

    lease: LeaseToken
    kept: bool
    cancel_requested: bool = False


class Recent(Struct, frozen=True):
    """The newest tasks; ``unreadable`` tells how many were left out because their records cannot be read."""

    tasks: Sequence[Task]
    unreadable: int = 0


class TaskStore(Protocol):
    """Tasks as values. Holds no rule: it compares versions and requirements, and stores what it is given.

    Making a change real means, in one atomic step: the task moves from the place of ``before`` to that of ``after``
    (stream entry, schedule, dead letter), its record, idempotency record, result, audit entry and the count of its
    queue's scheduled tasks are written, its event is published, and all of it lives as long as the retention says.
    """

    async def load(self, task_id: TaskId) -> Task | None:
        """Return the task as stored, with its payload, or None. Raises RecordUnreadable where it cannot be read."""
        ...

    async def create(self, admissions: Sequence[Admission], *, limits: BrokerLimits) -> Sequence[CreateAnswer]:
        """Bring tasks into being, each in one atomic step of its own, in order.

        Looked at in this order: the token or the task's own id (Already, Conflict), the idempotency record (KeyTaken,
        unless its text is ``replaces``), the limits on depth, schedule and queue names (Full; a known queue always
        has its name). Refused admissions write nothing. Raises BrokerOutOfMemory where memory is full.
        An adapter may write its requests when this is called; nothing is sent before it is awaited. One that makes
        several requests of a call raises PartlyAnswered where not the first of them fails.
        """
        ...

    async def commit(self, changes: Sequence[Change]) -> Sequence[CommitAnswer]:
        """Make changes real, each in one atomic step of its own, in order.

        A change is made only if the stored version is that of ``stored``, and every requirement holds. The tokens of
        a task's last 8 commits are known: repeating one is Already and changes nothing. One change's failure leaves
        the others alone. Commits run when memory is full, except a requeue (BrokerOutOfMemory).
        An idempotency record that names another task is left alone; a missing one is made only by a new life.
        Raises PartlyAnswered as ``create`` does.
        """
        ...

    async def recent(self, *, queue: QueueName | None, status: TaskStatus | None, limit: int) -> Recent:
        """Return up to *limit* of the last 10,000 tasks that match, newest first, without payload.

        Tasks whose records cannot be read are left out, and counted where they may match, as far as was looked.
        """
        ...

    async def result(self, task_id: TaskId) -> str | None:
        """Return the JSON text of the task's result, or None where there is none or it has expired."""
        ...


class WorkQueue(Protocol):
    """Ready work, strict by priority; an entry has at most one owner, until it goes stale."""

    async def fetch(
        self,
        queue: QueueName,
        *,
        worker: WorkerId,
        limit: int,
        reap_idle: timedelta | None,
        held: Collection[Receipt] = (),
        after: Sequence[Change] = (),
        offers: Offers | None = None,
    ) -> Fetch:
        """Take up to *limit* entries for *worker*, from priority 9 down to 0, without waiting.

        Within a priority: entries of *held* (which this worker owns already) first, then, where *reap_idle* is given,
        entries whose owner has been idle for that long, then fresh ones; the owner of what is taken counts as heard of
        now, even if it had handed that back. Entries of *held* that do not fit stay owned and are not returned. A
        paused queue gives nothing. A queue whose groups are lost is repaired. A record that cannot be read makes only
        its own entry unreadable, which counts toward *limit*.

        The changes of *after* are made first, as by commit, and each that is made adds one to *limit*, which may begin
        below zero. Their answers come whatever the sweep meets: where none can be made, that is a fault.

        What is taken and merely waits for its first start is started by the next one of *offers* in the same step, as
        by a commit of ``start_unseen``. Where that cannot be, or none is left, it comes as it is. Another entry of such
        a task comes with the task as it is then.
        """
        ...

    async def begun(self, queue: QueueName, *, worker: WorkerId, leases: Collection[LeaseToken]) -> Sequence[Delivery]:
        """Return the entries that *worker* owns whose stored task names one of *leases*, with the task as it is."""
        ...

    async def wait(self, queue: QueueName, *, worker: WorkerId, timeout: timedelta) -> Sequence[Receipt]:
        """Wait until an entry is ready or *timeout* passes; return what was read, of any priority, now owned.

        At most one entry a priority is read. Entries that were ready before are read at once. A priority that cannot be
        read is left out.
        """
        ...

    async def owned(self, queue: QueueName, *, worker: WorkerId) -> Sequence[Receipt]:
        """Return every entry that *worker* owns, highest priority first; for use after a reply was lost."""
        ...

    async def release(self, receipts: Collection[Receipt], *, worker: WorkerId) -> int:
        """Hand entries back, so that any worker's next reaping fetch takes them, oldest first; return how many.

        An entry that *worker* does not own any more is left alone. The attempt is not counted.
        """
        ...

    async def extend(self, leases: Collection[HeldLease], *, worker: WorkerId) -> Sequence[LeaseReport]:
        """Make entries look new, so that nobody reaps them; return one report a lease.

        Only where the stored task still names the lease: then the entry is *worker*'s even if somebody reaped it
        without starting it. Otherwise it is lost, and nothing changes.
        """
        ...

    async def acknowledge(self, delivery: Delivery, *, worker: WorkerId, absorbed: bool, token: Version) -> bool:
        """Remove an entry without changing its task; return whether this call removed it.

        Nothing happens if the stored version is no longer that of ``delivery.task``. Where *absorbed*, the call that
        removed the entry publishes one task.duplicate_absorbed of id *token*.
        """
        ...

    async def bury(self, delivery: Delivery, *, worker: WorkerId, at: datetime) -> bool:
        """Move an entry that names no task to the dead letters as malformed; return whether this call did."""
        ...


class Schedule(Protocol):
    """Work not yet due. Taking is a loan: what is not committed comes back."""

    async def take_due(self, *, now: datetime, leader: LeaseToken, limit: int) -> Sequence[TaskId | Task]:
        """Claim up to *limit* tasks that are due, earliest first, if *leader* leads; return them without payload.

        A claimed id whose task is gone, or cannot be read, comes back as the bare id.
        """
        ...

    async def next_due(self) -> datetime | None:
        """Return when the earliest scheduled task is due, or None."""
        ...

    async def forget(self, task_id: TaskId, *, version: Version) -> bool:
        """Drop an id from the schedule and the claims if the task's stored version is *version* ('' means gone)."""
        ...

    async def return_stale(self, *, claimed_before: datetime, now: datetime, limit: int) -> int:
        """Put back, as due *now*, claims that were made before *claimed_before*; return how many."""
        ...


class Broker(TaskStore, WorkQueue, Schedule, Protocol):
    """The three that share one atomic step, so that one adapter implements them together."""
