"""Random lives of one task: whatever the deciders are asked, and in whatever order, every step is a legal one."""

from datetime import datetime, timedelta

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dtq.domain.admission import TaskSpec
from dtq.domain.change import Change
from dtq.domain.decision import Acknowledge, Drop
from dtq.domain.delivery import Claim, FailurePolicy, finish, start
from dtq.domain.events import EventType
from dtq.domain.idempotency import RecordState, record_of
from dtq.domain.lifecycle import KEPT_PREVIOUS_ATTEMPTS, cancel, discard, promote, purge, requeue, submit
from dtq.domain.outcome import Outcome
from dtq.domain.possible import impossibility
from dtq.domain.retry import RetryPolicy
from dtq.domain.status import Place, TaskStatus, is_legal
from dtq.domain.task import EntryId, LeaseToken, Receipt, Task, Version, WorkerId, place_of
from tests.domain.factories import OPERATOR, TASK_ID
from tests.property.shelf import Shelf
from tests.property.strategies import outcomes, passing_time, specs

WORKERS = st.sampled_from([WorkerId("worker-1"), WorkerId("worker-2")])
POLICIES = st.builds(FailurePolicy, retry=st.just(RetryPolicy()), dead_letters=st.booleans())
JITTERS = st.floats(-0.2, 0.2)

EVENT_OF = {
    (None, TaskStatus.QUEUED): EventType.TASK_QUEUED,
    (None, TaskStatus.PENDING): None,
    (TaskStatus.PENDING, TaskStatus.QUEUED): EventType.TASK_QUEUED,
    (TaskStatus.PENDING, TaskStatus.EXPIRED): EventType.TASK_EXPIRED,
    (TaskStatus.PENDING, TaskStatus.CANCELLED): EventType.TASK_CANCELLED,
    (TaskStatus.QUEUED, TaskStatus.RUNNING): EventType.TASK_STARTED,
    (TaskStatus.QUEUED, TaskStatus.EXPIRED): EventType.TASK_EXPIRED,
    (TaskStatus.QUEUED, TaskStatus.CANCELLED): EventType.TASK_CANCELLED,
    (TaskStatus.RUNNING, TaskStatus.SUCCEEDED): EventType.TASK_SUCCEEDED,
    (TaskStatus.RUNNING, TaskStatus.RETRYING): EventType.TASK_RETRY_SCHEDULED,
    (TaskStatus.RUNNING, TaskStatus.FAILED): EventType.TASK_FAILED,
    (TaskStatus.RUNNING, TaskStatus.DEAD_LETTERED): EventType.TASK_DEAD_LETTERED,
    (TaskStatus.RUNNING, TaskStatus.CANCELLED): EventType.TASK_CANCELLED,
    (TaskStatus.RETRYING, TaskStatus.QUEUED): EventType.TASK_RETRIED,
    (TaskStatus.RETRYING, TaskStatus.CANCELLED): EventType.TASK_CANCELLED,
    (TaskStatus.DEAD_LETTERED, TaskStatus.QUEUED): EventType.TASK_QUEUED,
    (TaskStatus.DEAD_LETTERED, TaskStatus.DEAD_LETTERED): None,
}


class Life(RuleBasedStateMachine):
    """One task among two workers, a leader and an operator, who all may be late or wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.shelf = Shelf()
        self.spec: TaskSpec | None = None
        self.leases = [LeaseToken("never given")]
        self.attempts_of_lives = 0

    @initialize(spec=specs)
    def submitted(self, spec: TaskSpec) -> None:
        self._submit(spec)

    @precondition(lambda self: self.shelf.stored.is_terminal and place_of(self.shelf.task) is not Place.DEAD)
    @rule(spec=specs)
    def submitted_again(self, spec: TaskSpec) -> None:
        self.shelf = Shelf()
        self._submit(spec)

    def _submit(self, spec: TaskSpec) -> None:
        self.spec = spec
        self.attempts_of_lives = 0
        change = submit(spec, task_id=TASK_ID, now=self.shelf.now, token=self.shelf.token())
        assert self.shelf.commit(change)

    @rule(duration=passing_time)
    def time_passes(self, duration: timedelta) -> None:
        self.shelf.wait(duration)

    @precondition(lambda self: place_of(self.shelf.task) is Place.SCHEDULE)
    @rule()
    def promoted_in_time(self) -> None:
        self.shelf.wait(max(timedelta(), self.shelf.stored.available_at - self.shelf.now))
        self._promote()

    @precondition(lambda self: place_of(self.shelf.task) is Place.READY)
    @rule(worker=WORKERS, policy=POLICIES)
    def delivered(self, worker: WorkerId, policy: FailurePolicy) -> None:
        self._deliver(worker, policy)

    @precondition(lambda self: place_of(self.shelf.task) is Place.HELD)
    @rule(worker=WORKERS, policy=POLICIES, really=st.sampled_from([False, False, True]))
    def reclaimed(self, worker: WorkerId, policy: FailurePolicy, *, really: bool) -> None:
        if really:
            self._deliver(worker, policy)

    def _deliver(self, worker: WorkerId, policy: FailurePolicy) -> None:
        receipt = self.shelf.deliver(worker)
        assert receipt is not None
        self._start(Claim(worker=worker, lease=self.shelf.lease(), receipt=receipt), policy)

    @precondition(lambda self: self.shelf.stored.lease is not None)
    @rule(outcome=outcomes, policy=POLICIES, jitter=JITTERS)
    def finished(self, outcome: Outcome, policy: FailurePolicy, jitter: float) -> None:
        self._finish(self.leases[-1], outcome, policy=policy, jitter=jitter)

    @rule(worker=WORKERS, policy=POLICIES, outcome=outcomes, data=st.data())
    def somebody_comes_late(
        self, worker: WorkerId, policy: FailurePolicy, outcome: Outcome, data: st.DataObject
    ) -> None:
        lease = data.draw(st.sampled_from([*self.leases, self.shelf.lease()]))
        match data.draw(st.sampled_from(["start", "finish", "promote"])):
            case "start":
                task = self.shelf.stored
                entry_id = data.draw(st.sampled_from([EntryId("0-1"), task.entry_id or EntryId("0-2")]))
                receipt = Receipt(task.queue, task.priority, entry_id)
                self._start(Claim(worker=worker, lease=lease, receipt=receipt), policy)
            case "finish":
                self._finish(lease, outcome, policy=policy, jitter=0)
            case _:
                self._promote()

    @rule(act=st.sampled_from(["wait", "wait", "cancel", "purge", "discard"]))
    def an_operator_intervenes(self, act: str) -> None:
        before = self.shelf.stored
        match act:
            case "cancel":
                decision = self.shelf.act(lambda task, now, token: cancel(task, now=now, token=token, by=OPERATOR))
                assert isinstance(decision, Drop) == (before.is_terminal or before.cancel_requested)
            case "purge":
                decision = self.shelf.act(lambda task, now, token: purge(task, now=now, token=token))
                assert isinstance(decision, Change) == (before.status is TaskStatus.QUEUED)
            case "discard":
                decision = self.shelf.act(lambda task, now, token: discard(task, now=now, token=token, by=OPERATOR))
                assert isinstance(decision, Change) == (place_of(before) is Place.DEAD)
            case _:
                pass

    @precondition(lambda self: place_of(self.shelf.task) is Place.DEAD)
    @rule()
    def requeued(self) -> None:
        self.attempts_of_lives += self.shelf.stored.attempt
        decision = self.shelf.act(lambda task, now, token: requeue(task, now=now, token=token, by=OPERATOR))
        assert isinstance(decision, Change)

    def _promote(self) -> None:
        task, now = self.shelf.stored, self.shelf.now
        decision = self.shelf.act(lambda task, now, token: promote(task, now=now, token=token))
        due = place_of(task) is Place.SCHEDULE and task.available_at <= now
        assert due == isinstance(decision, Change)

    def _start(self, claim: Claim, policy: FailurePolicy) -> None:
        before = self.shelf.stored
        decision = self.shelf.act(
            lambda task, now, token: start(task, claim=claim, now=now, token=token, policy=policy)
        )
        if isinstance(decision, Acknowledge):
            assert before.is_terminal or before.receipt != claim.receipt
        if isinstance(decision, Change):
            assert decision.holder == claim.worker
            if self.shelf.stored.lease == claim.lease:
                self.leases.append(claim.lease)

    def _finish(self, lease: LeaseToken, outcome: Outcome, *, policy: FailurePolicy, jitter: float) -> None:
        before = self.shelf.stored

        def decide(task: Task, now: datetime, token: Version) -> Change | Drop:
            return finish(task, lease=lease, outcome=outcome, now=now, token=token, policy=policy, jitter=jitter)

        assert (before.lease == lease) == isinstance(self.shelf.act(decide), Change)

    @invariant()
    def the_last_step_is_a_legal_one_and_announced(self) -> None:
        for change in self.shelf.changes[-1:]:
            was, now = change.before.status if change.before else None, change.after.status
            if was is not None and was is not now:
                assert is_legal(was, now)
            kind = change.event.type if change.event else None
            if was is now is TaskStatus.RUNNING:
                asked = change.after.cancel_requested
                assert kind is (EventType.TASK_CANCEL_REQUESTED if asked else EventType.TASK_STARTED)
            else:
                assert EVENT_OF[was, now] is kind
            if change.event is not None:
                assert change.after.version == change.event.event_id

    @invariant()
    def it_is_possible(self) -> None:
        assert impossibility(self.shelf.stored) is None

    @invariant()
    def its_place_and_its_fields_agree(self) -> None:
        task = self.shelf.stored
        in_stream = place_of(task) in {Place.READY, Place.HELD}
        assert in_stream == (task.entry_id is not None)
        assert (place_of(task) is Place.HELD) == (task.lease is not None)
        assert (place_of(task) is Place.DEAD) == (task.dlq_entry_id is not None)
        assert not task.is_terminal or task.finished_at is not None
        assert not task.discarded or task.status is TaskStatus.DEAD_LETTERED
        assert not task.cancel_requested or task.status in {TaskStatus.RUNNING, TaskStatus.CANCELLED}

    @invariant()
    def attempts_are_counted_and_recorded_once(self) -> None:
        task = self.shelf.stored
        ended = task.attempt - (task.status is TaskStatus.RUNNING)
        assert 0 <= task.attempt <= task.max_attempts
        assert list(range(1, ended + 1)) == [record.attempt for record in task.history]
        assert len(task.previous_attempts) == min(self.attempts_of_lives, KEPT_PREVIOUS_ATTEMPTS)
        assert self.attempts_of_lives == task.previous_attempts_dropped + len(task.previous_attempts)

    @invariant()
    def the_schedule_is_counted(self) -> None:
        counted = sum(change.scheduled_delta for change in self.shelf.changes)
        assert counted == (place_of(self.shelf.stored) is Place.SCHEDULE)

    @invariant()
    def the_idempotency_record_is_in_step(self) -> None:
        task = self.shelf.stored
        record = record_of(self.shelf.changes[-1])
        if task.idempotency_key is None:
            assert record is None
        else:
            state = RecordState.FAILED if task.is_terminal else RecordState.PROCESSING
            expected = RecordState.COMPLETED if task.status is TaskStatus.SUCCEEDED else state
            assert record is not None
            assert (expected, task.task_id) == (record.state, record.task_id)

    @invariant()
    def what_was_asked_stays(self) -> None:
        task, spec = self.shelf.stored, self.spec
        assert spec is not None
        assert (spec.payload, spec.metadata, spec.queue) == (task.payload, task.metadata, task.queue)
        assert (spec.priority, spec.max_attempts, spec.timeout) == (task.priority, task.max_attempts, task.timeout)


TestLife = Life.TestCase
