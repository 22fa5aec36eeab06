"""Tests of handlers need no server and no sleep."""

import asyncio
from datetime import timedelta

import pytest

from dtq import Submission
from dtq.domain.errors import InvalidTask, TaskTerminal, UnknownTaskType
from dtq.domain.status import TaskStatus
from dtq.testing import App, StillRunning, SyncApp, TooMuchWork
from tests.testing import example_tasks
from tests.testing.example_tasks import Greeted, Greeting


@pytest.fixture
def dtq_tasks() -> list[object]:
    return [example_tasks]


async def test_a_typed_task_runs_and_its_result_is_typed(dtq_app: App) -> None:
    submitted = await dtq_app.client.submit("greet", Greeting(name="Ada", times=2))

    (ended,) = await dtq_app.drain()

    assert submitted.task_id == ended.task_id
    assert ended.succeeded
    assert Greeted(text="Hello, Ada! Hello, Ada!") == ended.result_as(Greeted)


async def test_a_sync_handler_runs_in_a_thread(dtq_app: App) -> None:
    await dtq_app.client.submit("greet_in_thread", {"name": "Ada"})

    (ended,) = await dtq_app.drain()

    assert "Ada in dtq-handler" == ended.result


async def test_a_payload_of_another_type_is_refused(dtq_app: App) -> None:
    with pytest.raises(InvalidTask, match=r"payload\.name: required"):
        await dtq_app.client.submit("greet", {})
    with pytest.raises(InvalidTask, match=r"payload\.times: expected `int` >= 1"):
        await dtq_app.client.submit("greet", {"name": "Ada", "times": 0})
    with pytest.raises(UnknownTaskType):
        await dtq_app.client.submit("unknown", {})
    with pytest.raises(InvalidTask, match="payload: cannot be written as JSON"):
        await dtq_app.client.submit("flaky", {"fails": float("nan")})

    dtq_app.assert_enqueued("greet", count=0)


async def test_a_drain_moves_the_clock_to_each_retry(dtq_app: App) -> None:
    began = dtq_app.now
    await dtq_app.client.submit("flaky", {"fails": 2})

    (ended,) = await dtq_app.drain()

    assert 3 == ended.result
    assert [1000, 2000] == [attempt.retry_delay_ms for attempt in ended.history[:2]]
    assert timedelta(seconds=3) == dtq_app.now - began


async def test_a_task_that_is_never_done_is_a_dead_letter(dtq_app: App) -> None:
    await dtq_app.client.submit("never", {})
    await dtq_app.client.submit("flaky", {"fails": 9}, max_attempts=2)

    first, second = await dtq_app.drain()

    assert (TaskStatus.DEAD_LETTERED, "PermanentError", 1) == (first.status, first.error_class, first.attempt)
    assert (TaskStatus.DEAD_LETTERED, "RetryableError", 2) == (second.status, second.error_class, second.attempt)


async def test_a_delayed_task_waits_for_its_time(dtq_app: App) -> None:
    await dtq_app.client.submit("greet", {"name": "Ada"}, delay_seconds=86_400)

    assert [] == await dtq_app.run_due()
    await dtq_app.advance(timedelta(days=1))
    (ended,) = await dtq_app.run_due()

    assert ended.succeeded


async def test_a_month_is_drained_at_once(dtq_app: App) -> None:
    began = dtq_app.now
    await dtq_app.client.submit("greet", {"name": "Ada"}, delay_seconds=2_592_000)

    await dtq_app.drain()

    assert timedelta(days=30) == dtq_app.now - began


async def test_what_is_enqueued_can_be_asserted(dtq_app: App) -> None:
    await dtq_app.client.submit_many(
        [Submission("greet", Greeting(name="Ada"), queue="mail"), Submission("greet", Greeting(name="Bob"))]
    )

    dtq_app.assert_enqueued("greet")
    dtq_app.assert_enqueued("greet", count=2)
    (ada,) = dtq_app.assert_enqueued("greet", payload=Greeting(name="Ada"), queue="mail")
    dtq_app.assert_enqueued("greet", payload={"name": "Bob", "times": 1}, count=1)
    dtq_app.assert_enqueued("never", count=0)
    with pytest.raises(AssertionError, match=r"1 enqueued of greet in mail, expected 2; waiting are:\n  greet \{"):
        dtq_app.assert_enqueued("greet", queue="mail", count=2)
    with pytest.raises(AssertionError, match="0 enqueued of greet"):
        dtq_app.assert_enqueued("greet", payload=Greeting(name="Eve"))

    await dtq_app.client.cancel(ada.task_id)
    dtq_app.assert_enqueued("greet", count=1)


async def test_queues_and_priorities_are_drained_in_their_order(dtq_app: App) -> None:
    for queue, priority in [("b", 9), ("a", 1), ("a", 9)]:
        await dtq_app.client.submit("greet", {"name": "Ada"}, queue=queue, priority=priority)

    ended = await dtq_app.drain()

    assert [("a", 9), ("a", 1), ("b", 9)] == [(task.queue, task.priority) for task in ended]


async def test_waiting_for_a_task_runs_it(dtq_app: App) -> None:
    submitted = await dtq_app.client.submit("flaky", {"fails": 1})

    ended = await dtq_app.client.wait(submitted.task_id)

    assert 2 == ended.result
    with pytest.raises(TaskTerminal):
        await dtq_app.client.cancel(submitted.task_id)


async def test_a_repeat_under_one_key_is_a_duplicate(dtq_app: App) -> None:
    first = await dtq_app.client.submit("greet", {"name": "Ada"}, idempotency_key="one")
    await dtq_app.drain()

    again = await dtq_app.client.submit("greet", {"name": "Ada"}, idempotency_key="one")

    assert (first.task_id, True) == (again.task_id, again.duplicate)


async def test_a_handler_that_hangs_is_named(dtq_app: App) -> None:
    await dtq_app.client.submit("hang")

    with pytest.raises(StillRunning, match=r"hang .* still runs after 0.01 s"):
        await dtq_app.drain(patience=0.01)


async def test_a_running_handler_times_out_on_the_tests_clock(dtq_app: App) -> None:
    await dtq_app.client.submit("hang", timeout_ms=1000, max_attempts=1)

    draining = asyncio.ensure_future(dtq_app.drain())
    await dtq_app.advance(timedelta(seconds=2))
    (ended,) = await draining

    assert "TimeoutError" == ended.error_class
    assert [] == dtq_app.errors


async def test_work_without_end_is_noticed(dtq_app: App) -> None:
    await dtq_app.client.submit("flaky", {"fails": 9})

    with pytest.raises(TooMuchWork, match="more than 3 attempts"):
        await dtq_app.drain(limit=3)

    (task,) = dtq_app.enqueued("flaky")
    assert (3, 3) == (len(dtq_app.errors), task.attempt)


async def test_as_many_attempts_as_may_run_are_not_too_many(dtq_app: App) -> None:
    await dtq_app.client.submit("flaky", {"fails": 2})

    (ended,) = await dtq_app.drain(limit=3)

    assert (3, True) == (ended.attempt, ended.succeeded)


async def test_what_was_one_too_many_runs_in_the_next_drain(dtq_app: App) -> None:
    await dtq_app.client.submit("flaky", {"fails": 1})
    with pytest.raises(TooMuchWork):
        await dtq_app.drain(limit=1)

    (ended,) = await dtq_app.drain(limit=1)

    assert (2, True) == (ended.attempt, ended.succeeded)


def test_everything_works_without_an_event_loop(dtq_sync_app: SyncApp) -> None:
    submitted = dtq_sync_app.client.submit("greet_in_thread", Greeting(name="Ada"), delay_seconds=60)
    dtq_sync_app.assert_enqueued("greet_in_thread", count=1)

    assert [] == dtq_sync_app.run_due()
    dtq_sync_app.advance(timedelta(seconds=60))
    (ended,) = dtq_sync_app.drain()

    assert submitted.task_id == ended.task_id
    assert "Ada in dtq-handler" == dtq_sync_app.client.get(ended.task_id).result
    assert ended == dtq_sync_app.client.wait(ended.task_id)


class TestSettings:
    @pytest.fixture
    def dtq_settings(self) -> dict[str, str]:
        return {"DTQ_MAX_ATTEMPTS": "1", "DTQ_RESULT_MAX_BYTES": "5"}

    async def test_settings_are_the_tests_own(self, dtq_app: App, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DTQ_MAX_ATTEMPTS", "7")
        await dtq_app.client.submit("greet", {"name": "Ada"})

        (ended,) = await dtq_app.drain()

        assert (1, True) == (ended.max_attempts, ended.result_truncated)


def test_two_apps_share_nothing(dtq_sync_app: SyncApp) -> None:
    dtq_sync_app.client.submit("greet", {"name": "Ada"})

    other = SyncApp([example_tasks.greet])

    other.assert_enqueued("greet", count=0)
    assert [] == other.drain()
    other.close()
