from typing import assert_never

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dtq.domain.idempotency import IdempotencyRecord, InProgress, RecordState, Replay, TakeOver, answer, state_of
from dtq.domain.status import TaskStatus
from dtq.domain.task import Task, TaskId
from tests.domain.factories import NOW, a_task

TASK_IDS = st.text("0123456789abcdef", min_size=32, max_size=32).map(TaskId)
RECORDS = st.builds(IdempotencyRecord, task_id=TASK_IDS, state=st.sampled_from(RecordState), updated_at=st.just(NOW))
STATUSES = st.none() | st.sampled_from(TaskStatus)


@given(record=RECORDS, status=STATUSES)
def test_a_used_key_never_makes_a_second_task_beside_a_stored_one(
    record: IdempotencyRecord, status: TaskStatus | None
) -> None:
    task = None if status is None else replace(a_task(status), task_id=record.task_id)

    decision = answer(record, task=task)

    match decision:
        case Replay(task_id=task_id, task=found):
            assert (record.task_id, task) == (task_id, found)
            assert is_over(task, record)
        case InProgress(task_id=task_id):
            assert record.task_id == task_id
            assert not is_over(task, record)
        case TakeOver():
            assert task is None
            assert RecordState.PROCESSING is record.state
        case _:
            assert_never(decision)


def is_over(task: Task | None, record: IdempotencyRecord) -> bool:
    return record.state is not RecordState.PROCESSING if task is None else task.is_terminal


@given(task_id=TASK_IDS, status=st.sampled_from(TaskStatus))
def test_a_record_in_step_with_its_task_answers_as_the_task_would_alone(task_id: TaskId, status: TaskStatus) -> None:
    task = replace(a_task(status), task_id=task_id)
    record = IdempotencyRecord(task_id=task_id, state=state_of(status), updated_at=NOW)

    with_task, without_task = answer(record, task=task), answer(record, task=None)

    assert isinstance(with_task, Replay) == isinstance(without_task, Replay)
