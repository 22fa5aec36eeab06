from dtq.domain.events import Event, EventType, pause_event, task_event, worker_event
from dtq.domain.status import TaskStatus
from dtq.domain.task import QueueName
from tests.domain.factories import NOW, TASK_ID, WORKER, a_task

QUEUE = QueueName("default")


def test_the_types_are_the_contracts_and_the_three_that_were_added() -> None:
    contract = (
        "TASK_QUEUED TASK_STARTED TASK_SUCCEEDED TASK_FAILED TASK_RETRY_SCHEDULED TASK_RETRIED TASK_DEAD_LETTERED "
        "TASK_CANCELLED WORKER_STARTED WORKER_STOPPED WORKER_STALE CONFIGURATION_CHANGED"
    )
    added = {"TASK_EXPIRED", "TASK_CANCEL_REQUESTED", "task.duplicate_absorbed"}

    assert {*contract.split(), *added} == {kind.value for kind in EventType}


def test_an_event_of_a_task_tells_of_the_task_after_the_step() -> None:
    event = task_event(
        a_task(TaskStatus.RUNNING),
        kind=EventType.TASK_STARTED,
        event_id="e",
        at=NOW,
        worker=WORKER,
        metadata={"redelivered": True},
    )

    expected = Event(
        event_id="e",
        ts=NOW,
        type=EventType.TASK_STARTED,
        task_id=TASK_ID,
        queue=QUEUE,
        task_type="echo_task",
        attempt=1,
        worker_id=WORKER,
        metadata={"redelivered": True},
    )
    assert expected == event


def test_an_event_of_a_worker_names_no_task() -> None:
    event = worker_event(EventType.WORKER_STALE, event_id="e", at=NOW, worker=WORKER, queue=QUEUE)

    assert Event(event_id="e", ts=NOW, type=EventType.WORKER_STALE, worker_id=WORKER, queue=QUEUE) == event


def test_a_pause_changes_the_configuration_of_its_queue() -> None:
    event = pause_event(QUEUE, event_id="e", at=NOW, paused=True)

    metadata: dict[str, str | int | bool] = {"queue": "default", "paused": True}
    assert Event(event_id="e", ts=NOW, type=EventType.CONFIGURATION_CHANGED, queue=QUEUE, metadata=metadata) == event
