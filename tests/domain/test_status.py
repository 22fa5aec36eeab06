import pytest

from dtq.domain.status import (
    ADMIN_TRANSITIONS,
    HOMES,
    INITIAL,
    TERMINAL,
    VALID_TRANSITIONS,
    WAITING_FOR_TIME,
    Place,
    TaskStatus,
    is_legal,
)
from tests.domain.factories import ALIVE, ENDED, PAIRS, STATUSES

CONTRACT = {
    "pending": {"queued", "cancelled", "expired"},
    "queued": {"running", "cancelled", "expired"},
    "running": {"succeeded", "retrying", "failed", "dead_lettered", "cancelled"},
    "retrying": {"queued", "cancelled"},
}
ADMIN = {"dead_lettered": {"queued"}}


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_the_contracts_table_says_which_step_is_legal(before: TaskStatus, after: TaskStatus) -> None:
    onward = CONTRACT.get(before.value, set()) | ADMIN.get(before.value, set())

    assert (after.value in onward) == is_legal(before, after)


def test_the_table_is_the_contracts_word_for_word() -> None:
    table = {before.value: {after.value for after in onward} for before, onward in VALID_TRANSITIONS.items()}

    assert {status.value: CONTRACT.get(status.value, set()) for status in STATUSES} == table


def test_an_operator_may_only_requeue() -> None:
    table = {before.value: {after.value for after in onward} for before, onward in ADMIN_TRANSITIONS.items()}

    assert ADMIN == table


@pytest.mark.parametrize("table", [VALID_TRANSITIONS, ADMIN_TRANSITIONS])
def test_nobody_can_change_the_tables(table: dict[TaskStatus, frozenset[TaskStatus]]) -> None:
    with pytest.raises(TypeError):
        table[TaskStatus.SUCCEEDED] = frozenset(STATUSES)


def test_ended_are_the_five_final_statuses() -> None:
    assert set(ENDED) == TERMINAL


def test_every_living_task_can_be_cancelled_by_a_step() -> None:
    assert set(ALIVE) == {status for status in STATUSES if is_legal(status, TaskStatus.CANCELLED)}


def test_a_task_begins_pending_or_queued() -> None:
    assert {TaskStatus.PENDING, TaskStatus.QUEUED} == INITIAL


@pytest.mark.parametrize(
    ("status", "place"),
    [
        (TaskStatus.PENDING, Place.SCHEDULE),
        (TaskStatus.QUEUED, Place.READY),
        (TaskStatus.RUNNING, Place.HELD),
        (TaskStatus.RETRYING, Place.SCHEDULE),
        (TaskStatus.DEAD_LETTERED, Place.DEAD),
        (TaskStatus.SUCCEEDED, Place.NOWHERE),
        (TaskStatus.FAILED, Place.NOWHERE),
        (TaskStatus.CANCELLED, Place.NOWHERE),
        (TaskStatus.EXPIRED, Place.NOWHERE),
    ],
)
def test_each_status_has_its_place(status: TaskStatus, place: Place) -> None:
    assert place is HOMES[status]


def test_those_that_wait_for_time_are_those_in_the_schedule() -> None:
    assert {status for status in STATUSES if HOMES[status] is Place.SCHEDULE} == WAITING_FOR_TIME


def test_the_names_are_the_contracts() -> None:
    names = ["pending", "queued", "running", "succeeded", "retrying", "failed", "dead_lettered", "cancelled", "expired"]

    assert names == [status.value for status in STATUSES]
