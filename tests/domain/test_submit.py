from datetime import timedelta

from msgspec.structs import replace

from dtq.domain.admission import TaskSpec
from dtq.domain.change import Change
from dtq.domain.events import EventType
from dtq.domain.lifecycle import submit
from dtq.domain.status import TaskStatus
from dtq.domain.task import QueueName, Task
from tests.domain.factories import NOW, TASK_ID, TOKEN, a_spec


def submitted(spec: TaskSpec) -> Change:
    return submit(spec, task_id=TASK_ID, now=NOW, token=TOKEN)


def test_a_submission_is_queued_with_every_field_of_its_own() -> None:
    spec = replace(a_spec(), queue=QueueName("mail"), priority=9, idempotency_key="key", metadata='{"a":[]}')

    change = submitted(spec)

    expected = Task(
        task_id=TASK_ID,
        queue=QueueName("mail"),
        task_type="echo_task",
        priority=9,
        max_attempts=3,
        timeout=timedelta(seconds=30),
        created_at=NOW,
        available_at=NOW,
        status=TaskStatus.QUEUED,
        payload='{"hello":"world"}',
        metadata='{"a":[]}',
        idempotency_key="key",
        version=TOKEN,
    )
    assert expected == change.after
    assert (None, (), None, None) == (change.before, change.requires, change.audit, change.result)


def test_a_submission_to_the_queue_is_announced_by_its_token() -> None:
    event = submitted(a_spec()).event

    assert event is not None
    assert (EventType.TASK_QUEUED, TOKEN, NOW, 0) == (event.type, event.event_id, event.ts, event.attempt)
    assert (None, None) == (event.worker_id, event.metadata)


def test_a_delayed_submission_is_pending_and_announced_only_when_it_is_queued() -> None:
    change = submitted(replace(a_spec(), delay=timedelta(milliseconds=1)))

    assert (TaskStatus.PENDING, NOW + timedelta(milliseconds=1)) == (change.after.status, change.after.available_at)
    assert change.event is None


def test_the_time_to_live_counts_from_the_submission() -> None:
    spec = replace(a_spec(), delay=timedelta(seconds=60), ttl=timedelta(seconds=5))

    assert NOW + timedelta(seconds=5) == submitted(spec).after.ttl_at
