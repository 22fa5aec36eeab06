"""The broker port: the store, the ready queues and the schedule over one link."""

from collections.abc import Collection, Coroutine, Sequence
from datetime import datetime, timedelta

from dtq.adapters.redis import ready, schedule, store, turn, unseen
from dtq.adapters.redis.begun import begun
from dtq.adapters.redis.description import Forms
from dtq.adapters.redis.link import Link
from dtq.domain.admission import BrokerLimits
from dtq.domain.change import Change
from dtq.domain.status import TaskStatus
from dtq.domain.task import LeaseToken, QueueName, Receipt, Task, TaskId, Version, WorkerId
from dtq.ports.answers import Admission, CommitAnswer, CreateAnswer
from dtq.ports.broker import Delivery, Fetch, HeldLease, LeaseReport, Offers, Recent


class RedisBroker:
    """Broker on Redis Streams. Atomic because each step is one script."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._forms = Forms(link.keys, options=link.options)
        self._starts = unseen.starts(link.keys, options=link.options)

    async def load(self, task_id: TaskId) -> Task | None:
        return await store.load(self._link, task_id)

    def create(
        self, admissions: Sequence[Admission], *, limits: BrokerLimits
    ) -> Coroutine[None, None, Sequence[CreateAnswer]]:
        return store.create(self._link, self._forms, admissions, limits=limits)

    async def commit(self, changes: Sequence[Change]) -> Sequence[CommitAnswer]:
        return await store.commit(self._link, self._forms, changes)

    async def recent(self, *, queue: QueueName | None, status: TaskStatus | None, limit: int) -> Recent:
        return await store.recent(self._link, queue=queue, status=status, limit=limit)

    async def result(self, task_id: TaskId) -> str | None:
        return await store.result(self._link, task_id)

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
        sweep = ready.Sweep(
            queue=queue,
            worker=worker,
            limit=limit,
            reap_idle=reap_idle,
            held=held,
            offered=None if offers is None else unseen.Offered(offers, self._starts),
        )
        if after:
            return await turn.fetch_after(self._link, self._forms, after, sweep)
        return await ready.fetch(self._link, sweep)

    async def begun(self, queue: QueueName, *, worker: WorkerId, leases: Collection[LeaseToken]) -> Sequence[Delivery]:
        return await begun(self._link, queue, worker=worker, leases=leases)

    async def wait(self, queue: QueueName, *, worker: WorkerId, timeout: timedelta) -> Sequence[Receipt]:
        return await ready.wait(self._link, queue, worker=worker, timeout=timeout)

    async def owned(self, queue: QueueName, *, worker: WorkerId) -> Sequence[Receipt]:
        return await ready.owned(self._link, queue, worker=worker)

    async def release(self, receipts: Collection[Receipt], *, worker: WorkerId) -> int:
        return await ready.release(self._link, receipts, worker=worker)

    async def extend(self, leases: Collection[HeldLease], *, worker: WorkerId) -> Sequence[LeaseReport]:
        return await ready.extend(self._link, leases, worker=worker)

    async def acknowledge(self, delivery: Delivery, *, worker: WorkerId, absorbed: bool, token: Version) -> bool:
        return await ready.acknowledge(self._link, delivery, worker=worker, absorbed=absorbed, token=token)

    async def bury(self, delivery: Delivery, *, worker: WorkerId, at: datetime) -> bool:
        del worker  # whoever comes first does it
        return await ready.bury(self._link, delivery, at=at)

    async def take_due(self, *, now: datetime, leader: LeaseToken, limit: int) -> Sequence[TaskId | Task]:
        return await schedule.take_due(self._link, now=now, leader=leader, limit=limit)

    async def next_due(self) -> datetime | None:
        return await schedule.next_due(self._link)

    async def forget(self, task_id: TaskId, *, version: Version) -> bool:
        return await schedule.forget(self._link, task_id, version=version)

    async def return_stale(self, *, claimed_before: datetime, now: datetime, limit: int) -> int:
        return await schedule.return_stale(self._link, claimed_before=claimed_before, now=now, limit=limit)
