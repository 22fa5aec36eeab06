"""The broker port over structures in memory: tasks, ready queues and schedule."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from dtq.adapters.memory import delivery as deliveries
from dtq.adapters.memory.begun import begin_all, begun
from dtq.adapters.memory.commit import commit_all, create
from dtq.adapters.memory.state import State, bare
from dtq.domain.admission import BrokerLimits
from dtq.domain.change import Change
from dtq.domain.status import TaskStatus
from dtq.domain.task import LeaseToken, QueueName, Receipt, Task, TaskId, Version, WorkerId
from dtq.ports.answers import Admission, Applied, CommitAnswer, CreateAnswer
from dtq.ports.broker import Delivery, Fetch, HeldLease, LeaseReport, Offers, Recent


class MemoryBroker:
    """Broker in one process. Atomic because no step of it awaits anything."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def load(self, task_id: TaskId) -> Task | None:
        self._state.faults.before_read(task_id)
        return self._state.task(task_id)

    async def create(self, admissions: Sequence[Admission], *, limits: BrokerLimits) -> Sequence[CreateAnswer]:
        self._state.faults.before_admission()
        answers = [create(self._state, admission, limits=limits) for admission in admissions]
        self._state.faults.before_reply()
        return answers

    async def commit(self, changes: Sequence[Change]) -> Sequence[CommitAnswer]:
        answers = commit_all(self._state, changes)
        self._state.faults.before_reply()
        return answers

    async def recent(self, *, queue: QueueName | None, status: TaskStatus | None, limit: int) -> Recent:
        found: list[Task] = []
        unreadable = 0
        for task_id in reversed(self._state.recent):
            task = bare(self._state.task(task_id))
            if task is None or (queue or task.queue) != task.queue:
                continue
            if self._state.readable(task_id) is None:
                unreadable += 1
            elif task.status is (status or task.status):
                found.append(task)
            if len(found) == limit:
                break
        return Recent(found, unreadable)

    async def result(self, task_id: TaskId) -> str | None:
        return self._state.results.get(task_id)

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
        answers = commit_all(self._state, after)
        room = max(0, limit + sum(isinstance(answer, Applied) for answer in answers))
        fetched = deliveries.fetch(self._state, queue, worker=worker, limit=room, reap_idle=reap_idle, held=held)
        if offers is not None:
            started = begin_all(self._state, fetched.deliveries, offers, worker=worker)
            fetched = replace(fetched, deliveries=started)
        self._state.faults.before_reply()
        return replace(fetched, answers=answers)

    async def begun(self, queue: QueueName, *, worker: WorkerId, leases: Collection[LeaseToken]) -> Sequence[Delivery]:
        return begun(self._state, queue, worker=worker, leases=leases)

    async def wait(self, queue: QueueName, *, worker: WorkerId, timeout: timedelta) -> Sequence[Receipt]:
        end = self._state.clock.monotonic() + timeout.total_seconds()
        while True:
            receipts = deliveries.read_one_each(self._state, queue, worker=worker)
            left = end - self._state.clock.monotonic()
            if receipts or left <= 0:
                self._state.faults.before_reply()
                return receipts
            await self._state.arrival(queue, within=timedelta(seconds=left))

    async def owned(self, queue: QueueName, *, worker: WorkerId) -> Sequence[Receipt]:
        return list(self._state.queue(queue).receipts(queue, owner=worker))

    async def release(self, receipts: Collection[Receipt], *, worker: WorkerId) -> int:
        released = deliveries.release(self._state, receipts, worker=worker)
        self._state.faults.before_reply()
        return released

    async def extend(self, leases: Collection[HeldLease], *, worker: WorkerId) -> Sequence[LeaseReport]:
        reports = [deliveries.extend(self._state, lease, worker=worker) for lease in leases]
        self._state.faults.before_reply()
        return reports

    async def acknowledge(self, delivery: Delivery, *, worker: WorkerId, absorbed: bool, token: Version) -> bool:
        removed = deliveries.acknowledge(self._state, delivery, worker=worker, absorbed=absorbed, token=token)
        self._state.faults.before_reply()
        return removed

    async def bury(self, delivery: Delivery, *, worker: WorkerId, at: datetime) -> bool:
        del worker  # whoever comes first does it
        buried = deliveries.bury(self._state, delivery, at=at)
        self._state.faults.before_reply()
        return buried

    async def take_due(self, *, now: datetime, leader: LeaseToken, limit: int) -> Sequence[TaskId | Task]:
        if not self._state.leads(leader):
            return ()
        schedule = self._state.schedule
        waiting = [(slot.due, task_id) for task_id, slot in schedule.items() if slot.claimed_at is None]
        taken = [task_id for due, task_id in sorted(waiting) if due <= now][:limit]
        for task_id in taken:
            schedule[task_id] = replace(schedule[task_id], claimed_at=now)
        self._state.faults.before_reply()
        return [bare(self._state.readable(task_id)) or task_id for task_id in taken]

    async def next_due(self) -> datetime | None:
        return min((slot.due for slot in self._state.schedule.values() if slot.claimed_at is None), default=None)

    async def forget(self, task_id: TaskId, *, version: Version) -> bool:
        if self._state.version(task_id) != version:
            return False
        forgotten = self._state.schedule.pop(task_id, None) is not None
        self._state.faults.before_reply()
        return forgotten

    async def return_stale(self, *, claimed_before: datetime, now: datetime, limit: int) -> int:
        schedule = self._state.schedule
        stale = [
            task_id
            for task_id, slot in schedule.items()
            if slot.claimed_at is not None and slot.claimed_at < claimed_before
        ][:limit]
        for task_id in stale:
            schedule[task_id] = replace(schedule[task_id], due=now, claimed_at=None)
        self._state.faults.before_reply()
        return len(stale)
