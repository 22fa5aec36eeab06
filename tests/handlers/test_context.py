"""What a handler is told."""

from dtq.domain.task import TaskId
from dtq.handlers import TaskContext
from tests.factories import NOW, QUEUE, WORKER


def test_the_time_that_is_left_is_asked_for_anew_each_time() -> None:
    left = iter([2.0, -1.0])
    context = TaskContext(
        task_id=TaskId("0" * 32),
        idempotency_key=None,
        attempt=1,
        worker_id=WORKER,
        queue=QUEUE,
        deadline=NOW,
        seconds_left=lambda: next(left),
    )

    assert [2.0, -1.0] == [context.remaining(), context.remaining()]
