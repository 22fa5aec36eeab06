from typing import Any

import pytest
from msgspec.structs import replace

from dtq.domain.change import Change, IllegalChange, Requirement
from dtq.domain.status import TaskStatus, is_legal
from dtq.domain.task import NO_VERSION, EntryId, QueueName, Task, TaskId
from tests.domain.factories import ENDED, LEASE, NEW_LEASE, NOW, PAIRS, STATUSES, TOKEN, VERSION, WORKER, a_task

STEPS_THAT_STAY = (TaskStatus.PENDING, TaskStatus.QUEUED, TaskStatus.RUNNING, TaskStatus.RETRYING)


def a_change(before: Task | None, after: Task) -> Change:
    return Change(before=before, after=after, at=NOW)


def next_of(before: Task, status: TaskStatus) -> Task:
    """What *before* looks like after a step to *status*, be it legal or not."""
    after = replace(a_task(status), attempt=before.attempt, version=TOKEN)
    if status is TaskStatus.RUNNING and before.lease is None:
        after = replace(after, attempt=before.attempt + 1)
    if before.status is TaskStatus.DEAD_LETTERED and status is TaskStatus.QUEUED:
        after = replace(after, attempt=0)
    return after


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_only_a_legal_step_between_two_statuses_can_be_built(before: TaskStatus, after: TaskStatus) -> None:
    task = a_task(before)
    legal = is_legal(before, after) or (before is after and before in STEPS_THAT_STAY)

    try:
        a_change(task, next_of(task, after))
    except IllegalChange:
        built = False
    else:
        built = True

    assert legal == built


@pytest.mark.parametrize("status", STATUSES)
def test_a_task_comes_into_being_pending_or_queued_only(status: TaskStatus) -> None:
    after = replace(a_task(status), attempt=0, version=TOKEN)

    if status in {TaskStatus.PENDING, TaskStatus.QUEUED}:
        assert after == a_change(None, after).after
    else:
        with pytest.raises(IllegalChange, match="begins pending or queued"):
            a_change(None, after)


def test_a_task_comes_into_being_without_an_attempt() -> None:
    with pytest.raises(IllegalChange, match="without an attempt"):
        a_change(None, replace(a_task(), attempt=1, version=TOKEN))


@pytest.mark.parametrize("token", [NO_VERSION, VERSION])
def test_a_step_needs_a_new_token(token: str) -> None:
    task = a_task()

    with pytest.raises(IllegalChange, match="new token"):
        a_change(task, replace(task, status=TaskStatus.CANCELLED, version=token))


@pytest.mark.parametrize("status", [status for status in STATUSES if status is not TaskStatus.RUNNING])
def test_only_a_running_task_has_a_lease(status: TaskStatus) -> None:
    before = a_task(TaskStatus.RUNNING)

    with pytest.raises(IllegalChange, match="lease"):
        a_change(before, replace(next_of(before, status), lease=LEASE))


def test_a_running_task_has_a_lease() -> None:
    before = a_task()

    with pytest.raises(IllegalChange, match="lease"):
        a_change(before, replace(next_of(before, TaskStatus.RUNNING), lease=None))


@pytest.mark.parametrize("attempt", [-1, 4])
def test_an_attempt_is_within_its_bounds(attempt: int) -> None:
    before = a_task()

    with pytest.raises(IllegalChange, match=r"not within 0\.\.3"):
        a_change(before, replace(next_of(before, TaskStatus.RUNNING), attempt=attempt))


@pytest.mark.parametrize("attempt", [0, 2])
def test_a_start_counts_exactly_one_attempt(attempt: int) -> None:
    before = a_task()

    with pytest.raises(IllegalChange, match="does not follow 0"):
        a_change(before, replace(next_of(before, TaskStatus.RUNNING), attempt=attempt))


@pytest.mark.parametrize("attempt", [1, 3])
def test_a_redelivery_counts_exactly_one_attempt(attempt: int) -> None:
    before = a_task(TaskStatus.RUNNING)

    with pytest.raises(IllegalChange, match="does not follow 1"):
        a_change(before, replace(before, lease=NEW_LEASE, attempt=attempt, version=TOKEN))


def test_the_same_lease_counts_no_attempt() -> None:
    before = a_task(TaskStatus.RUNNING)

    with pytest.raises(IllegalChange, match="does not follow 1"):
        a_change(before, replace(before, attempt=2, version=TOKEN))


def test_a_new_life_begins_without_attempts() -> None:
    before = a_task(TaskStatus.DEAD_LETTERED)

    with pytest.raises(IllegalChange, match="does not follow 1"):
        a_change(before, replace(a_task(), attempt=1, version=TOKEN))


@pytest.mark.parametrize(
    "other",
    [
        replace(a_task(), task_id=TaskId("f" * 32)),
        replace(a_task(), queue=QueueName("mail")),
        replace(a_task(), priority=9),
        replace(a_task(), max_attempts=10),
        replace(a_task(), idempotency_key="other"),
    ],
)
def test_a_step_keeps_what_the_task_is_known_by(other: Task) -> None:
    before = a_task(TaskStatus.PENDING)

    with pytest.raises(IllegalChange, match="identity"):
        a_change(before, replace(other, version=TOKEN))


@pytest.mark.parametrize("status", ENDED)
def test_nothing_changes_an_ended_task(status: TaskStatus) -> None:
    before = a_task(status)

    with pytest.raises(IllegalChange, match="ended"):
        a_change(before, replace(before, version=TOKEN))


@pytest.mark.parametrize("changes", [{"dlq_entry_id": EntryId("2-0")}, {"dlq_entry_id": None, "attempt": 2}])
def test_a_dead_letter_is_exchanged_for_no_other(changes: dict[str, Any]) -> None:
    before = replace(a_task(TaskStatus.DEAD_LETTERED), dlq_entry_id=EntryId("1-0"))

    with pytest.raises(IllegalChange, match="ended"):
        a_change(before, replace(before, version=TOKEN, **changes))


def test_a_dead_letter_is_named_again_and_nothing_else_is_new() -> None:
    before = replace(a_task(TaskStatus.DEAD_LETTERED), dlq_entry_id=None)
    after = replace(before, dlq_entry_id=EntryId("1-0"), version=TOKEN)

    assert after == a_change(before, after).after
    with pytest.raises(IllegalChange, match="ended"):
        a_change(before, replace(after, task_type="another"))


def test_a_dead_letter_can_be_discarded() -> None:
    before = a_task(TaskStatus.DEAD_LETTERED)
    after = replace(before, discarded=True, version=TOKEN)

    assert after == a_change(before, after).after


@pytest.mark.parametrize("status", [status for status in STATUSES if status is not TaskStatus.DEAD_LETTERED])
def test_only_a_dead_letter_can_be_discarded(status: TaskStatus) -> None:
    before = a_task(TaskStatus.RUNNING)

    with pytest.raises(IllegalChange, match="only a dead letter"):
        a_change(before, replace(next_of(before, status), discarded=True))


def test_a_discarded_task_stays_as_it_is() -> None:
    before = replace(a_task(TaskStatus.DEAD_LETTERED), discarded=True)

    with pytest.raises(IllegalChange, match="discarded"):
        a_change(before, next_of(before, TaskStatus.QUEUED))


@pytest.mark.parametrize("status", [status for status in STATUSES if is_legal(TaskStatus.RUNNING, status)])
def test_a_requested_cancellation_can_end_in_cancelled_only(status: TaskStatus) -> None:
    before = replace(a_task(TaskStatus.RUNNING), cancel_requested=True)
    after = next_of(before, status)

    if status is TaskStatus.CANCELLED:
        assert after == a_change(before, after).after
    else:
        with pytest.raises(IllegalChange, match="cancellation"):
            a_change(before, after)


def test_a_task_whose_cancellation_is_requested_is_not_run_again() -> None:
    before = replace(a_task(TaskStatus.RUNNING), cancel_requested=True)

    with pytest.raises(IllegalChange, match="cancellation"):
        a_change(before, replace(before, lease=NEW_LEASE, attempt=2, version=TOKEN))


@pytest.mark.parametrize(
    ("requires", "holder"),
    [((), WORKER), ((Requirement.UNPAUSED,), WORKER), ((Requirement.HELD,), None)],
)
def test_a_holder_is_named_exactly_where_the_entry_must_be_held(
    requires: tuple[Requirement, ...], holder: None
) -> None:
    before = a_task()
    after = next_of(before, TaskStatus.EXPIRED)

    with pytest.raises(IllegalChange, match="holder"):
        Change(before=before, after=after, at=NOW, requires=requires, holder=holder)


def test_the_fault_names_task_and_step() -> None:
    before = a_task()

    with pytest.raises(IllegalChange, match=f"^{before.task_id}: queued -> succeeded: no such transition$"):
        a_change(before, next_of(before, TaskStatus.SUCCEEDED))


def test_a_fault_at_birth_names_what_was_there() -> None:
    with pytest.raises(IllegalChange, match="nothing -> running"):
        a_change(None, replace(a_task(TaskStatus.RUNNING), version=TOKEN))


def test_a_broker_must_hold_the_task_that_was_read() -> None:
    before = a_task()

    assert before == a_change(before, next_of(before, TaskStatus.RUNNING)).stored


def test_a_broker_must_hold_nothing_where_a_task_begins_or_was_rebuilt() -> None:
    rebuilt = replace(a_task(), version=NO_VERSION)

    assert a_change(None, replace(a_task(), version=TOKEN)).stored is None
    assert a_change(rebuilt, next_of(rebuilt, TaskStatus.RUNNING)).stored is None


@pytest.mark.parametrize("status", [status for status in STATUSES if is_legal(status, TaskStatus.CANCELLED)])
def test_a_cancelled_task_is_marked_where_a_worker_may_hold_its_entry_unstarted(status: TaskStatus) -> None:
    before = a_task(status)
    change = a_change(before, next_of(before, TaskStatus.CANCELLED))

    assert (status is TaskStatus.QUEUED) == change.marks_cancelled


def test_no_other_step_from_the_queue_marks() -> None:
    before = a_task()

    assert not a_change(before, next_of(before, TaskStatus.EXPIRED)).marks_cancelled


@pytest.mark.parametrize(
    ("before", "after", "delta"),
    [
        (None, TaskStatus.PENDING, 1),
        (None, TaskStatus.QUEUED, 0),
        (TaskStatus.PENDING, TaskStatus.QUEUED, -1),
        (TaskStatus.PENDING, TaskStatus.CANCELLED, -1),
        (TaskStatus.PENDING, TaskStatus.EXPIRED, -1),
        (TaskStatus.PENDING, TaskStatus.PENDING, 0),
        (TaskStatus.QUEUED, TaskStatus.RUNNING, 0),
        (TaskStatus.RUNNING, TaskStatus.RETRYING, 1),
        (TaskStatus.RUNNING, TaskStatus.SUCCEEDED, 0),
        (TaskStatus.RETRYING, TaskStatus.QUEUED, -1),
        (TaskStatus.RETRYING, TaskStatus.CANCELLED, -1),
        (TaskStatus.DEAD_LETTERED, TaskStatus.QUEUED, 0),
    ],
)
def test_a_step_counts_the_scheduled_tasks(before: TaskStatus | None, after: TaskStatus, delta: int) -> None:
    if before is None:
        change = a_change(None, replace(a_task(after), version=TOKEN))
    else:
        change = a_change(a_task(before), next_of(a_task(before), after))

    assert delta == change.scheduled_delta


def test_only_a_submission_starts_a_life() -> None:
    rebuilt = replace(a_task(), version=NO_VERSION)

    assert a_change(None, replace(a_task(), version=TOKEN)).starts_life
    assert not a_change(rebuilt, next_of(rebuilt, TaskStatus.RUNNING)).starts_life


@pytest.mark.parametrize(("before", "after"), [pair for pair in PAIRS if is_legal(*pair)])
def test_only_a_requeue_revives(before: TaskStatus, after: TaskStatus) -> None:
    change = a_change(a_task(before), next_of(a_task(before), after))

    assert (before is TaskStatus.DEAD_LETTERED) == change.revives


def test_neither_a_submission_nor_a_discard_revives() -> None:
    dead = a_task(TaskStatus.DEAD_LETTERED)

    assert not a_change(None, replace(a_task(), version=TOKEN)).revives
    assert not a_change(dead, replace(dead, discarded=True, version=TOKEN)).revives
