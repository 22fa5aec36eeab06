"""A handler can be called as the function that it is."""

from datetime import timedelta

from dtq.testing import context
from tests.testing.example_tasks import flaky


async def test_a_handler_is_called_with_a_context_of_the_test() -> None:
    assert 3 == await flaky({"fails": 2}, context(attempt=3))


def test_a_context_says_what_it_is_told_to_say() -> None:
    given = context(attempt=2, task_id="a" * 32, idempotency_key="one", queue="mail", worker_id="w", remaining=0.5)

    assert (2, "a" * 32, "one") == (given.attempt, given.task_id, given.idempotency_key)
    assert ("mail", "w", 0.5) == (given.queue, given.worker_id, given.remaining())


def test_a_context_has_defaults_for_all_the_rest() -> None:
    given = context()

    assert (1, None, "default", 30.0) == (given.attempt, given.idempotency_key, given.queue, given.remaining())
    assert timedelta() == given.deadline.utcoffset()
