"""A handler that loses a Redis connection of its own is tried again."""

from dtq.domain.status import TaskStatus
from tests.judged.sizes import QUICK
from tests.judged.system import System, a_task


def test_a_connection_error_of_redis_is_retried(system: System) -> None:
    system.worker(QUICK)

    (task_id,) = system.create(a_task("lose_connection"))
    ended = system.ended(task_id)

    assert (TaskStatus.SUCCEEDED, 2) == (ended.status, ended.attempt)
    assert [1, 2] == system.journal.starts(task_id)
    assert ended.history[0].failure is not None
    assert ("ConnectionError", True) == (ended.history[0].failure.error_class, ended.history[0].failure.retryable)
