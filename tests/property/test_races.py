"""Two actors, one task: whoever comes second decides on what the first has left, and both orders end well."""

from collections.abc import Callable
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dtq.domain.change import Change, Requirement
from dtq.domain.decision import Acknowledge, Drop, DropReason
from dtq.domain.delivery import Claim, FailurePolicy, finish, start
from dtq.domain.lifecycle import cancel, promote, purge, submit
from dtq.domain.outcome import Failed, Outcome, Succeeded
from dtq.domain.status import TaskStatus
from dtq.domain.task import LeaseToken, Task, Version, WorkerId
from tests.domain.factories import LEASE, NEW_LEASE, OPERATOR, TASK_ID, TOKEN, a_spec, a_task
from tests.property.shelf import Shelf
from tests.property.strategies import outcomes

MINE, OTHER = WorkerId("worker-1"), WorkerId("worker-2")
POLICIES = st.builds(FailurePolicy, dead_letters=st.booleans())
ATTEMPTS = st.integers(1, 3)

Decide = Callable[[Task, datetime, Version], Change | Acknowledge | Drop]


def a_running_task(attempt: int) -> Shelf:
    """A task in its *attempt*, whose entry MINE owns."""
    shelf = Shelf()
    shelf.task = replace(a_task(TaskStatus.RUNNING), attempt=attempt)
    shelf.owner, shelf.delivered = MINE, True
    return shelf


def finishing(outcome: Outcome, policy: FailurePolicy, *, lease: LeaseToken = LEASE) -> Decide:
    return lambda task, now, token: finish(
        task, lease=lease, outcome=outcome, now=now, token=token, policy=policy, jitter=0
    )


def canceling(task: Task, now: datetime, token: Version) -> Change | Drop:
    return cancel(task, now=now, token=token, by=OPERATOR)


def starting(shelf: Shelf, *, worker: WorkerId, lease: LeaseToken, policy: FailurePolicy) -> Decide:
    receipt = shelf.stored.receipt
    assert receipt is not None
    claim = Claim(worker=worker, lease=lease, receipt=receipt)
    return lambda task, now, token: start(task, claim=claim, now=now, token=token, policy=policy)


@given(attempt=ATTEMPTS, outcome=outcomes, policy=POLICIES)
def test_a_cancel_before_the_finish_decides(attempt: int, outcome: Outcome, policy: FailurePolicy) -> None:
    shelf = a_running_task(attempt)

    shelf.act(canceling)
    shelf.act(finishing(outcome, policy))

    assert (TaskStatus.CANCELLED, None) == (shelf.stored.status, shelf.changes[-1].result)


@given(attempt=ATTEMPTS, outcome=outcomes, policy=POLICIES)
def test_a_cancel_after_the_finish_finds_what_is_left_to_cancel(
    attempt: int, outcome: Outcome, policy: FailurePolicy
) -> None:
    shelf = a_running_task(attempt)

    shelf.act(finishing(outcome, policy))
    finished = shelf.stored
    late = shelf.act(canceling)

    if finished.is_terminal:
        assert (Drop(DropReason.ENDED), finished) == (late, shelf.stored)
    else:
        assert (TaskStatus.RETRYING, TaskStatus.CANCELLED) == (finished.status, shelf.stored.status)


@given(attempt=ATTEMPTS, outcome=outcomes, policy=POLICIES)
def test_of_a_finish_and_a_cancel_decided_at_once_the_second_decides_again(
    attempt: int, outcome: Outcome, policy: FailurePolicy
) -> None:
    shelf = a_running_task(attempt)
    finish_change = finishing(outcome, policy)(shelf.stored, shelf.now, Version("finish"))
    cancel_change = canceling(shelf.stored, shelf.now, Version("cancel"))
    assert isinstance(finish_change, Change)
    assert isinstance(cancel_change, Change)

    assert (True, False) == (shelf.commit(cancel_change), shelf.commit(finish_change))
    shelf.act(finishing(outcome, policy))

    assert TaskStatus.CANCELLED is shelf.stored.status


@given(attempt=ATTEMPTS, first=outcomes, second=outcomes, policy=POLICIES)
def test_one_execution_ends_its_task_once(attempt: int, first: Outcome, second: Outcome, policy: FailurePolicy) -> None:
    shelf = a_running_task(attempt)

    shelf.act(finishing(first, policy))
    ended = shelf.stored

    assert Drop(DropReason.STALE) == shelf.act(finishing(second, policy))
    assert ended == shelf.stored


@given(attempt=st.integers(1, 2), late=outcomes, outcome=outcomes, policy=POLICIES, late_first=st.booleans())
def test_a_worker_that_lost_its_entry_ends_nothing(
    attempt: int, late: Outcome, outcome: Outcome, policy: FailurePolicy, *, late_first: bool
) -> None:
    shelf = a_running_task(attempt)
    shelf.deliver(OTHER)
    shelf.act(starting(shelf, worker=OTHER, lease=NEW_LEASE, policy=policy))
    in_time = finishing(outcome, policy, lease=NEW_LEASE)

    answers = [shelf.act(act) for act in ([finishing(late, policy), in_time] if late_first else [in_time])]
    ended = shelf.stored

    assert Drop(DropReason.STALE) == shelf.act(finishing(late, policy))
    assert (isinstance(answers[-1], Change), ended) == (True, shelf.stored)
    assert attempt + 1 == ended.attempt


@given(attempt=ATTEMPTS, outcome=outcomes, policy=POLICIES)
def test_a_reclaimed_task_that_is_finished_before_it_is_started_again_is_acknowledged(
    attempt: int, outcome: Outcome, policy: FailurePolicy
) -> None:
    shelf = a_running_task(attempt)
    shelf.deliver(OTHER)
    again = starting(shelf, worker=OTHER, lease=NEW_LEASE, policy=policy)

    shelf.act(finishing(outcome, policy))
    ended = shelf.stored

    assert Acknowledge(absorbed=not ended.is_terminal) == shelf.act(again)
    assert ended == shelf.stored


@given(attempt=st.integers(0, 2), policy=POLICIES, mine_first=st.booleans())
def test_of_two_workers_that_read_one_entry_only_its_owner_starts_it(
    attempt: int, policy: FailurePolicy, *, mine_first: bool
) -> None:
    shelf = Shelf()
    shelf.task = replace(a_task(), attempt=attempt)
    shelf.deliver(MINE)
    mine = starting(shelf, worker=MINE, lease=LEASE, policy=policy)
    shelf.deliver(OTHER)
    other = starting(shelf, worker=OTHER, lease=NEW_LEASE, policy=policy)

    for decide in (mine, other) if mine_first else (other, mine):
        shelf.act(decide)

    assert [OTHER] == [change.holder for change in shelf.changes]
    assert (attempt + 1, OTHER) == (shelf.stored.attempt, shelf.stored.worker_id)


@given(attempt=ATTEMPTS, policy=POLICIES, cancelled=st.booleans())
def test_whatever_a_start_changes_needs_the_entry(attempt: int, policy: FailurePolicy, *, cancelled: bool) -> None:
    shelf = a_running_task(attempt)
    if cancelled:
        shelf.act(canceling)

    decision = starting(shelf, worker=OTHER, lease=NEW_LEASE, policy=policy)(shelf.stored, shelf.now, TOKEN)

    assert isinstance(decision, Change)
    assert (True, OTHER) == (Requirement.HELD in decision.requires, decision.holder)


@given(delay=st.integers(1, 1000), cancel_first=st.booleans())
def test_a_task_is_promoted_or_cancelled_first_and_cancelled_in_the_end(delay: int, *, cancel_first: bool) -> None:
    shelf = Shelf()
    spec = replace(a_spec(), delay=timedelta(milliseconds=delay))
    shelf.commit(submit(spec, task_id=TASK_ID, now=shelf.now, token=shelf.token()))
    shelf.wait(spec.delay)

    def promoting(task: Task, now: datetime, token: Version) -> Change | Drop:
        return promote(task, now=now, token=token)

    for decide in (canceling, promoting) if cancel_first else (promoting, canceling):
        shelf.act(decide)

    assert (TaskStatus.CANCELLED, None) == (shelf.stored.status, shelf.stored.entry_id)


@given(outcome=outcomes, policy=POLICIES)
def test_a_second_leader_does_not_promote_a_retry_before_its_time(outcome: Outcome, policy: FailurePolicy) -> None:
    shelf = Shelf()
    shelf.task = a_task(TaskStatus.RETRYING)
    shelf.act(lambda task, now, token: promote(task, now=now, token=token))
    shelf.deliver(MINE)
    shelf.act(starting(shelf, worker=MINE, lease=LEASE, policy=policy))
    shelf.act(finishing(outcome, policy))
    after_the_run = shelf.stored

    late = shelf.act(lambda task, now, token: promote(task, now=now, token=token))

    retried = isinstance(outcome, Failed) and outcome.failure.retryable
    assert Drop(DropReason.NOT_DUE if retried else DropReason.NOT_WAITING) == late
    assert after_the_run == shelf.stored


@given(read=st.booleans())
def test_a_purge_takes_only_what_nobody_has_read(*, read: bool) -> None:
    shelf = Shelf()
    shelf.task = a_task()
    if read:
        shelf.deliver(MINE)

    shelf.act(lambda task, now, token: purge(task, now=now, token=token))

    assert (TaskStatus.QUEUED if read else TaskStatus.CANCELLED) is shelf.stored.status


@given(attempt=ATTEMPTS, policy=POLICIES)
def test_a_start_that_is_decided_again_after_a_lost_reply_is_known(attempt: int, policy: FailurePolicy) -> None:
    shelf = a_running_task(attempt)

    decision = shelf.act(starting(shelf, worker=MINE, lease=LEASE, policy=policy))

    assert (Drop(DropReason.ALREADY_MINE), []) == (decision, shelf.changes)


@given(text=st.text(max_size=5))
def test_a_result_is_kept_only_with_a_success(text: str) -> None:
    shelf = a_running_task(1)

    shelf.act(finishing(Succeeded(result=text), FailurePolicy()))

    assert (TaskStatus.SUCCEEDED, text) == (shelf.stored.status, shelf.changes[-1].result)
