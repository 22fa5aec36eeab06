from datetime import timedelta

import pytest
from msgspec.structs import replace

from dtq.domain.change import Change
from dtq.domain.idempotency import (
    IdempotencyRecord,
    InProgress,
    RecordState,
    Replay,
    TakeOver,
    answer,
    differences,
    record_of,
    state_of,
)
from dtq.domain.status import TaskStatus
from dtq.domain.task import TaskId
from tests.domain.factories import ALIVE, ENDED, NOW, STATUSES, TASK_ID, TOKEN, a_task


def a_record_in(state: RecordState) -> IdempotencyRecord:
    return IdempotencyRecord(task_id=TASK_ID, state=state, updated_at=NOW)


@pytest.mark.parametrize("status", STATUSES)
def test_the_record_tells_how_its_task_stands(status: TaskStatus) -> None:
    state = RecordState.PROCESSING if status in ALIVE else RecordState.FAILED

    assert (RecordState.COMPLETED if status is TaskStatus.SUCCEEDED else state) is state_of(status)


@pytest.mark.parametrize("state", RecordState)
@pytest.mark.parametrize("status", ALIVE)
def test_a_living_task_answers_that_it_is_in_progress(state: RecordState, status: TaskStatus) -> None:
    decision = answer(a_record_in(state), task=a_task(status))

    assert InProgress(task_id=TASK_ID, status=status) == decision


@pytest.mark.parametrize("state", RecordState)
@pytest.mark.parametrize("status", ENDED)
def test_an_ended_task_answers_with_itself_whatever_its_record_says(state: RecordState, status: TaskStatus) -> None:
    task = a_task(status)

    assert Replay(task_id=TASK_ID, task=task) == answer(a_record_in(state), task=task)


def test_a_record_that_outlived_its_living_task_is_taken_over() -> None:
    assert TakeOver() == answer(a_record_in(RecordState.PROCESSING), task=None)


@pytest.mark.parametrize("state", [RecordState.COMPLETED, RecordState.FAILED])
def test_a_record_that_outlived_its_ended_task_still_answers(state: RecordState) -> None:
    assert Replay(task_id=TASK_ID, task=None) == answer(a_record_in(state), task=None)


def test_a_record_is_compared_with_its_own_task_only() -> None:
    other = replace(a_task(), task_id=TaskId("f" * 32))

    with pytest.raises(ValueError, match=other.task_id):
        answer(a_record_in(RecordState.PROCESSING), task=other)


def test_a_step_of_a_task_with_a_key_carries_its_record() -> None:
    task = replace(a_task(), idempotency_key="key")
    change = Change(before=task, after=replace(task, status=TaskStatus.CANCELLED, entry_id=None, version=TOKEN), at=NOW)

    assert a_record_in(RecordState.FAILED) == record_of(change)


def test_a_step_of_a_task_without_a_key_carries_none() -> None:
    change = Change(before=None, after=replace(a_task(), version=TOKEN), at=NOW)

    assert record_of(change) is None


def test_the_states_are_the_contracts() -> None:
    assert ["processing", "completed", "failed"] == [state.value for state in RecordState]


def test_the_task_id_comes_first_in_a_record() -> None:
    assert ("task_id", "state", "updated_at") == IdempotencyRecord.__struct_fields__


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({}, ()),
        ({"task_id": TaskId("b" * 32), "created_at": NOW + timedelta(days=1), "version": TOKEN}, ()),
        ({"payload": '{"n": 2}'}, ("payload",)),
        ({"timeout": timedelta(seconds=1), "task_type": "other"}, ("task_type", "timeout")),
        ({"metadata": '{"x": 1}', "priority": 0, "max_attempts": 99}, ("metadata", "priority", "max_attempts")),
    ],
)
def test_a_repeat_that_asks_for_something_else_is_told_by_its_fields(
    changes: dict[str, object], named: tuple[str, ...]
) -> None:
    task = a_task()

    assert named == differences(task, asked=replace(task, **changes))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a":1,"b":[true,null]}', ' { "b" : [ true, null ],\n"a":1 } '),
        ('{"a":"\\u00e9"}', '{"a":"\u00e9"}'),
        ('{"a":{"x":1.50,"y":2}}', '{"a":{"y":2,"x":1.5}}'),
        ('{"a":1}', '{"a":2,"a":1}'),
        ('{"a":123456789012345678901234567890}', '{"a": 123456789012345678901234567890}'),
    ],
)
def test_what_means_the_same_is_no_difference_however_it_is_written(one: str, other: str) -> None:
    task = replace(a_task(), payload=one, metadata=one)

    assert () == differences(task, asked=replace(task, payload=other, metadata=other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a":1}', '{"a":true}'),
        ('{"a":1}', '{"a":1.0}'),
        ('{"a":[1,2]}', '{"a":[2,1]}'),
        ('{"a":"1"}', '{"a":1}'),
        ('{"a":9007199254740993}', '{"a":9007199254740992}'),
        ('{"a":1', '{"a":1}'),
        (None, "{}"),
    ],
)
def test_what_means_something_else_is_a_difference(one: str | None, other: str) -> None:
    task = replace(a_task(), payload=one)

    assert ("payload",) == differences(task, asked=replace(task, payload=other))
