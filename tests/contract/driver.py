"""One adapter and the pure model, driven side by side: each act is done to both, and the answers compared."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from dtq.domain.change import Change
from dtq.domain.decision import Acknowledge
from dtq.domain.entry import rebuild
from dtq.domain.errors import OutcomeUnknown
from dtq.domain.outcome import Outcome
from dtq.domain.task import NO_VERSION, Task, TaskId, WorkerId
from dtq.ports.answers import Applied, CommitAnswer, CreateAnswer, KeyTaken
from dtq.ports.broker import Delivery, Fetch, Offer, Offers
from tests.contract.harness import Harness
from tests.contract.model import Model
from tests.contract.steps import LEADER, all_strays, bare, decide_finish, decide_start, held_lease, now, seconds, write
from tests.factories import QUEUE, a_lease, a_token, an_admission, an_audit_entry, an_event


class Driver:
    """Does what workers, leaders, operators and accidents do."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.model = Model()
        self.deliveries: list[tuple[WorkerId, Delivery]] = []
        self.executions: list[tuple[WorkerId, Task]] = []
        self.taken: list[Task | TaskId] = []
        self.sent: list[Change] = []
        self.harmed: set[TaskId] = set()

    async def submit(self, **spec: Any) -> None:
        admission = an_admission(now=now(self.harness), **spec)
        key = spec.get("idempotency_key")
        answer = await write(self.harness, admission.change)
        if key in self.model.keys:
            assert isinstance(answer, KeyTaken)
            assert self.model.keys[key] == answer.record
        else:
            self._settle(admission.change, Applied, answer)

    async def commit(self, change: object, *, loses_reply: bool = False) -> bool:
        """Send a change, if it is one; answer whether it was made by this very call."""
        if not isinstance(change, Change):
            return False
        self.sent = [*self.sent[-9:], change]
        expected = self.model.answer(change)
        if loses_reply:
            await self.harness.lose_reply()
            try:
                await write(self.harness, change)
            except OutcomeUnknown:
                stored = await self.harness.backend.broker.load(change.after.task_id)
                if expected is Applied:
                    assert stored is not None
                    self.model.apply(change, stored)
                return expected is Applied
            raise AssertionError("the reply was not lost")
        self._settle(change, expected, await write(self.harness, change))
        return expected is Applied

    def _settle(self, change: Change, expected: type, answer: CommitAnswer | CreateAnswer) -> None:
        assert expected is type(answer), (expected, answer)
        if isinstance(answer, Applied):
            self.model.apply(change, answer.task)
            assert bare(self.model.tasks[change.after.task_id]) == bare(answer.task)
        else:
            task = self.model.tasks.get(change.after.task_id)
            assert (None if task is None else bare(task)) == getattr(answer, "task", None)

    async def repeat(self, change: Change) -> None:
        """Send a change once more; a submission that was made before is known by its id."""
        self._settle(change, self.model.answer(change), await write(self.harness, change))

    async def fetch(self, worker: WorkerId, *, limit: int, reap_idle: timedelta | None, offers: int = 0) -> None:
        """Fetch, and have so many tasks started by that."""
        starts = [Offer(a_lease(), a_token()) for _ in range(offers)]
        offered = Offers(at=now(self.harness), starts=starts) if offers else None
        fetched = await self.harness.backend.broker.fetch(
            QUEUE, worker=worker, limit=limit, reap_idle=reap_idle, held=(), offers=offered
        )
        self._taken(worker, fetched, limit=limit, reap_idle=reap_idle)
        used = [change for one in fetched.deliveries if (change := one.started) is not None]
        assert [(one.lease, one.token) for one in starts][: len(used)] == [
            (change.after.lease, change.after.version) for change in used
        ]

    def _taken(self, worker: WorkerId, fetched: Fetch, *, limit: int, reap_idle: timedelta | None) -> None:
        expected = self.model.fetch(worker, limit=limit, reap_idle=reap_idle)
        assert (self.model.is_paused, ()) == (fetched.paused, tuple(fetched.faults))
        assert expected == [one.receipt for one in fetched.deliveries]
        for one in fetched.deliveries:
            task_id = self.model.entries[one.receipt].task_id
            assert self.model.tasks.get(task_id) == one.task
            if one.started is not None:
                # another entry of its task sees it started
                self._settle(one.started, self.model.answer(one.started), Applied(one.started.after))
                self.executions.append((worker, one.started.after))
        self.deliveries += [(worker, one) for one in fetched.deliveries]

    async def start(self, worker: WorkerId, delivery: Delivery, *, loses_reply: bool) -> None:
        """Decide on what was delivered, however long ago, and do what was decided."""
        task = delivery.task or rebuild(delivery.fields, receipt=delivery.receipt)
        assert task is not None
        decision = decide_start(self.harness, delivery, worker=worker, task=task)
        if isinstance(decision, Acknowledge):
            await self._acknowledge(worker, delivery, absorbed=decision.absorbed)
        elif await self.commit(decision, loses_reply=loses_reply):
            started = self.model.tasks[task.task_id]
            if started.lease is not None:
                self.executions.append((worker, started))

    async def _acknowledge(self, worker: WorkerId, delivery: Delivery, *, absorbed: bool) -> None:
        entry = self.model.entries.get(delivery.receipt)
        stored = self.model.tasks.get(TaskId(delivery.fields["task_id"]))
        judged = NO_VERSION if delivery.task is None else delivery.task.version
        expected = entry is not None and judged == (NO_VERSION if stored is None else stored.version)
        removed = await self.harness.backend.broker.acknowledge(
            delivery, worker=worker, absorbed=absorbed, token=a_token()
        )
        assert expected == removed
        if removed:
            del self.model.entries[delivery.receipt]

    async def finish(self, task: Task, outcome: Outcome, *, loses_reply: bool) -> None:
        """End an execution as its worker believes it to stand, which another may have taken over."""
        stored = self.model.tasks.get(task.task_id)
        current = stored if stored is not None and stored.lease == task.lease else task
        await self.commit(decide_finish(self.harness, current, outcome), loses_reply=loses_reply)

    async def finish_and_fetch(self, worker: WorkerId, task: Task, outcome: Outcome, *, limit: int) -> None:
        """End an execution likewise, and fetch in the same call; what is ended makes room for one."""
        stored = self.model.tasks.get(task.task_id)
        current = stored if stored is not None and stored.lease == task.lease else task
        change = decide_finish(self.harness, current, outcome)
        assert isinstance(change, Change)
        expected = self.model.answer(change)
        fetched = await self.harness.backend.broker.fetch(
            QUEUE, worker=worker, limit=limit - 1, reap_idle=None, after=[change]
        )
        (answer,) = fetched.answers
        self._settle(change, expected, answer)
        room = max(0, limit - (expected is not Applied))
        self._taken(worker, fetched, limit=room, reap_idle=None)

    async def extend(self, worker: WorkerId, task: Task) -> None:
        stored, receipt = self.model.tasks.get(task.task_id), task.receipt
        is_kept = stored is not None and stored.lease == task.lease
        assert receipt is not None
        entry = self.model.entries.get(receipt)
        if is_kept and (entry is None or entry.owner is None):
            return  # the place or the owner was taken away by foul play: what extending does then is left open
        (report,) = await self.harness.backend.broker.extend([held_lease(task)], worker=worker)
        assert (is_kept, is_kept and stored is not None and stored.cancel_requested) == (
            report.kept,
            report.cancel_requested,
        )
        if is_kept:
            self.model.touch(receipt, worker)

    async def release(self, worker: WorkerId, deliveries: Sequence[Delivery]) -> None:
        receipts = [one.receipt for one in deliveries]
        released = await self.harness.backend.broker.release(receipts, worker=worker)
        assert self.model.release(receipts, worker) == released

    async def take_due(self, *, limit: int) -> None:
        moment = now(self.harness)
        assert await self.harness.backend.leadership.acquire(LEADER, term=seconds(3_600))
        found = await self.harness.backend.broker.take_due(now=moment, leader=LEADER, limit=limit)
        expected = self.model.take_due(now=moment, limit=limit)
        assert [self._bare(task_id) or task_id for task_id in expected] == list(found)
        self.taken += found

    async def return_stale(self) -> None:
        moment = now(self.harness)
        returned = await self.harness.backend.broker.return_stale(
            claimed_before=moment - seconds(35), now=moment, limit=1_000
        )
        assert self.model.return_stale(claimed_before=moment - seconds(35), now=moment) == returned

    async def forget(self, one: Task | TaskId) -> None:
        task_id, version = (one.task_id, one.version) if isinstance(one, Task) else (one, NO_VERSION)
        stored = self.model.tasks.get(task_id)
        matches = version == (NO_VERSION if stored is None else stored.version)
        forgotten = await self.harness.backend.broker.forget(task_id, version=version)
        assert (matches and task_id in self.model.slots) == forgotten
        if forgotten:
            del self.model.slots[task_id]

    async def empty_queue(self, decide: Callable[[Task], object]) -> None:
        """Purge as an operator does: cancel what waits, drop what is no live task's."""
        found = list(await self.harness.backend.queues.undelivered(QUEUE, limit=1_000))
        unread = [receipt for receipt in self.model.ordered() if self.model.entries[receipt].owner is None]
        own = {task.receipt: bare(task) for task in self.model.tasks.values() if not task.is_terminal}
        assert [own.get(receipt, receipt) for receipt in unread] == found
        for task in [one for one in found if isinstance(one, Task)]:
            await self.commit(decide(task))
        receipts = [one for one in found if not isinstance(one, Task)]
        assert len(receipts) == await self.harness.backend.queues.drop(receipts)
        for receipt in receipts:
            del self.model.entries[receipt]

    async def pause(self, *, is_paused: bool) -> None:
        queues = self.harness.backend.queues
        act = queues.pause if is_paused else queues.resume
        await act(QUEUE, audit=an_audit_entry(), event=an_event())
        self.model.is_paused = is_paused

    async def purge_dead_letters(self) -> None:
        assert len(self.model.letters) == await self.harness.backend.dead_letters.purge(audit=an_audit_entry())
        self.model.letters.clear()

    async def pass_time(self, by: timedelta) -> None:
        await self.harness.advance(by)
        self.model.pass_time(by)

    async def duplicate(self, task: Task) -> None:
        receipt = await self.harness.duplicate(task.task_id)
        self.model.add_entry(receipt, task.task_id)
        self.harmed.add(task.task_id)

    async def evict(self, task: Task) -> None:
        await self.harness.evict(task.task_id)
        del self.model.tasks[task.task_id], self.model.tokens[task.task_id]
        self.harmed.add(task.task_id)

    async def orphan(self, task: Task) -> None:
        await self.harness.orphan(task.task_id)
        self.model.orphan(task)
        self.harmed.add(task.task_id)

    async def lose_groups(self) -> None:
        await self.harness.lose_groups(QUEUE)
        await self.harness.backend.queues.register(QUEUE)
        self.model.lose_owners()
        self.harmed |= set(self.model.tasks)

    async def rehome(self, decide: Callable[[Task], object]) -> None:
        strays = await all_strays(self.harness)
        expected = [one for one in self.model.tasks.values() if not one.is_terminal and not self.model.holds(one)]
        assert {one.task_id: bare(one) for one in expected} == {one.task_id: one for one in strays}
        for stray in strays:
            await self.commit(decide(stray))

    def _bare(self, task_id: TaskId) -> Task | None:
        task = self.model.tasks.get(task_id)
        return None if task is None else replace(task, payload=None)
