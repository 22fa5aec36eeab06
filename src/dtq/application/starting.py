"""What becomes of the entries that a sweep brought: started, acknowledged, buried, or handed back."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, assert_never

from msgspec import Struct
from msgspec.structs import replace

from dtq.application.group_commit import Send, together
from dtq.application.hand_back import HandBack
from dtq.application.set_aside import SetAside
from dtq.application.tenure import Tenure
from dtq.domain.change import Change, IllegalChange, Requirement
from dtq.domain.decision import Acknowledge, Drop
from dtq.domain.delivery import Claim, FailurePolicy, start, unseen_start
from dtq.domain.entry import rebuild
from dtq.domain.errors import OF_ONE_REQUEST
from dtq.domain.status import TaskStatus
from dtq.domain.task import LeaseToken, QueueName, Receipt, Task, WorkerId
from dtq.domain.text import class_name, text_of
from dtq.ports.answers import Already, Applied, Broken, CommitAnswer, Conflict, Refused
from dtq.ports.broker import Broker, Delivery, Fetch, HeldLease, Offer, Offers, UnreadableEntry
from dtq.ports.environment import Clock, Ids
from dtq.ports.events import Observer

_MAX_ROUNDS: Final = 5

# named here, since to look up a member of an enumeration takes longer than to compare it
_RUNNING: Final = TaskStatus.RUNNING

Run = Callable[[Task, HeldLease], None]


class _Start(Struct):
    """One delivery on its way to be started; ``repeat`` is a step that stopped half-way and must be sent again."""

    delivery: Delivery
    receipt: Receipt
    task: Task | None
    lease: LeaseToken
    repeat: Change | None = None
    stopped: str = ""

    def held(self, task: Task) -> HeldLease:
        return HeldLease(task_id=task.task_id, receipt=self.receipt, lease=self.lease)


class Starting:
    """Starts deliveries; *run* is called for each that is now this worker's to run, payload loaded."""

    def __init__(
        self,
        broker: Broker,
        *,
        commit: Send[Change, CommitAnswer],
        hand_back: HandBack,
        set_aside: SetAside,
        tenure: Tenure,
        worker: WorkerId,
        policy: FailurePolicy,
        clock: Clock,
        ids: Ids,
        observer: Observer,
        run: Run,
    ) -> None:
        self._broker = broker
        self._commit_all = commit
        self._hand_back = hand_back
        self._set_aside = set_aside
        self._tenure = tenure
        self._worker = worker
        self._policy = policy
        self._clock = clock
        self._ids = ids
        self._observer = observer
        self._run = run
        self._doubtful: dict[LeaseToken, tuple[_Start, Change]] = {}
        self._open: dict[LeaseToken, Offer] = {}

    def offer(self, number: int) -> Offers:
        """Offer to start so many tasks unseen. What becomes of that is told by ``begin``, or found by ``resolve``."""
        offers = [Offer(self._ids.lease(), self._ids.token()) for _ in range(number)]
        self._open |= {offer.lease: offer for offer in offers}
        return Offers(at=self._clock.now(), starts=offers)

    def begin(self, fetched: Fetch, *, offered: Sequence[Offer]) -> None:
        """Run what was started by the offers that went with a fetch."""
        begun = [(one.started, one.started.after, one.receipt) for one in fetched.deliveries if one.started is not None]
        # a sweep that failed half-way may have started what it does not tell of
        told = {task.lease for _, task, _ in begun} if fetched.faults else None
        for offer in offered:
            if told is None or offer.lease in told:
                del self._open[offer.lease]
        self._tell_and_run(begun)

    async def start(self, deliveries: Sequence[Delivery]) -> None:
        """Decide about each delivery and make it so: all starts in one commit, what moved meanwhile in another.

        Raises WorkerReplaced.
        """
        waiting = [_Start(one, one.receipt, one.task, self._ids.lease()) for one in deliveries]
        returned: list[Receipt] = []
        for _ in range(_MAX_ROUNDS):
            decided = await self._decide_all(waiting, returned)
            waiting = await self._commit(decided, returned) if decided else []
        # handed back, what cannot be done would come round at once
        self._set_aside.add([UnreadableEntry(one.receipt, one.stopped) for one in waiting if one.repeat is not None])
        await self._hand_back.give([*returned, *(one.receipt for one in waiting if one.repeat is None)])

    async def resolve(self, queue: QueueName) -> None:
        """Run what was started by a commit whose reply was lost, and forget the rest.

        The lease is extended first: an entry that a peer has reaped meanwhile, but not started, is won back by that.
        """
        doubtful = self._doubtful.values()
        leases = [one.held(change.after) for one, change in doubtful]
        reports = await self._broker.extend(leases, worker=self._worker) if leases else ()
        kept = {report.lease for report in reports if report.kept}
        started = [(one, change) for one, change in doubtful if one.lease in kept]
        self._doubtful = {}
        self._tell_and_run([(change, change.after, one.receipt) for one, change in started])
        await self._resolve_offers(queue)

    async def _resolve_offers(self, queue: QueueName) -> None:
        if not self._open:
            return
        found = await self._broker.begun(queue, worker=self._worker, leases=self._open)
        tokens = {lease: offer.token for lease, offer in self._open.items()}
        self._open.clear()
        begun: list[tuple[Change, Task, Receipt]] = []
        for delivery in found:
            task = delivery.task
            change = None if task is None or task.lease is None else unseen_start(task, token=tokens[task.lease])
            if task is not None and change is not None:
                begun.append((change, task, delivery.receipt))
        self._tell_and_run(begun)

    def _tell_and_run(self, begun: Sequence[tuple[Change, Task, Receipt]]) -> None:
        if begun:
            self._observer.committed(*[change for change, _, _ in begun])
        for _, task, receipt in begun:
            if task.lease is not None:
                self._run(task, HeldLease(task_id=task.task_id, receipt=receipt, lease=task.lease))

    async def _decide_all(self, waiting: Sequence[_Start], returned: list[Receipt]) -> list[tuple[_Start, Change]]:
        """Decide about each delivery, and do at once what takes no commit.

        What is bad about one alone sets that aside, and stops no other.
        """
        decided: list[tuple[_Start, Change]] = []
        now = self._clock.now()
        for one in waiting:
            try:
                task = one.task or rebuild(one.delivery.fields, receipt=one.receipt)
                if task is None:
                    await self._bury(one)
                    continue
                decision = one.repeat or self._decide(one, task, now=now)
                if isinstance(decision, Change):
                    decided.append((one, decision))
                else:
                    await self._do(decision, one, task, returned)
            except (IllegalChange, *OF_ONE_REQUEST) as error:
                self._set_aside.add([UnreadableEntry(one.receipt, f"{class_name(error)}: {text_of(error)}")])
        return decided

    def _decide(self, one: _Start, task: Task, *, now: datetime) -> Change | Acknowledge | Drop:
        if one.task is None and one.delivery.cancelled:
            return Acknowledge(absorbed=False)
        claim = Claim(worker=self._worker, lease=one.lease, receipt=one.receipt)
        return start(task, claim=claim, now=now, token=self._ids.token(), policy=self._policy)

    async def _do(self, decision: Acknowledge | Drop, one: _Start, task: Task, returned: list[Receipt]) -> None:
        match decision:
            case Acknowledge(absorbed=absorbed):
                if not await self._acknowledge(one, absorbed=absorbed):
                    returned.append(one.receipt)
            case Drop():
                # only the lease of this very delivery can be found in the task: run it
                self._run(task, one.held(task))
            case _:
                assert_never(decision)

    async def _bury(self, one: _Start) -> None:
        await self._broker.bury(one.delivery, worker=self._worker, at=self._clock.now())
        self._observer.noticed("malformed_entry", queue=one.receipt.queue, entry_id=one.receipt.entry_id)

    async def _acknowledge(self, one: _Start, *, absorbed: bool) -> bool:
        judged = replace(one.delivery, task=one.task)
        token = self._ids.token()
        return await self._broker.acknowledge(judged, worker=self._worker, absorbed=absorbed, token=token)

    async def _commit(self, decided: Sequence[tuple[_Start, Change]], returned: list[Receipt]) -> list[_Start]:
        """Commit what was decided, run what was started, and return what must be decided or sent again."""
        # between the reading and now this process may have stood still, and another of its id begun
        await self._tenure.ensure()
        self._doubtful |= {one.lease: (one, change) for one, change in decided}
        answers = await together([change for _, change in decided], send=self._commit_all)
        for one, _ in decided:
            del self._doubtful[one.lease]
        again: list[_Start] = []
        made: list[tuple[_Start, Change, Applied | Already]] = []
        for (one, change), answer in zip(decided, answers, strict=True):
            one.repeat = None
            match answer:
                case Applied() | Already():
                    made.append((one, change, answer))
                case Conflict(task=found):
                    one.task = None if found is None else replace(found, payload=one.delivery.fields.get("payload"))
                    again.append(one)
                case Refused(requirement=Requirement.UNPAUSED):
                    returned.append(one.receipt)
                case Refused(requirement=requirement):
                    # the entry has another owner now, who decides about it
                    self._observer.noticed("start_refused", requirement=requirement.value)
                case Broken(reason=reason):
                    one.repeat, one.stopped = change, reason
                    again.append(one)
                case _:
                    assert_never(answer)
        if made:
            self._begin(made)
        return again

    def _begin(self, made: Sequence[tuple[_Start, Change, Applied | Already]]) -> None:
        """Tell of what was made, and run what was started, unless so long ago that the task has moved on."""
        self._observer.committed(*[change for _, change, _ in made])
        for one, change, answer in made:
            stored = change.after if isinstance(answer, Applied) else answer.task
            if change.after.status is _RUNNING and stored is not None and stored.lease == one.lease:
                self._run(change.after, one.held(change.after))
