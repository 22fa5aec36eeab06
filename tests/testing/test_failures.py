"""A handler that fails in a test shows where."""

import logging
import traceback

import pytest

from dtq.testing import App, SyncApp
from tests.testing import example_tasks


@pytest.fixture
def dtq_tasks() -> object:
    return example_tasks


@pytest.mark.parametrize(("task_type", "function"), [("never", "never"), ("broken_in_thread", "broken_in_thread")])
def test_the_traceback_of_a_failure_is_logged(
    dtq_sync_app: SyncApp, caplog: pytest.LogCaptureFixture, task_type: str, function: str
) -> None:
    dtq_sync_app.client.submit(task_type)

    (ended,) = dtq_sync_app.drain()

    (record,) = caplog.records
    assert ("dtq.testing", logging.WARNING) == (record.name, record.levelno)
    assert f"attempt 1 of {task_type} ({ended.task_id}) failed: PermanentError: no attempt can succeed" == (
        record.getMessage()
    )
    assert record.exc_info is not None
    first = traceback.extract_tb(record.exc_info[2])[0]
    assert (example_tasks.__file__, function) == (first.filename, first.name)


def test_the_errors_of_handlers_are_kept(dtq_sync_app: SyncApp) -> None:
    dtq_sync_app.client.submit("flaky", {"fails": 2})
    dtq_sync_app.client.submit("never", {})

    dtq_sync_app.drain()

    assert ["not yet", "no attempt can succeed", "not yet"] == [str(error) for error in dtq_sync_app.errors]


async def test_a_failure_without_an_error_is_logged_too(dtq_app: App, caplog: pytest.LogCaptureFixture) -> None:
    await dtq_app.client.submit("no_json")

    (ended,) = await dtq_app.drain()

    (record,) = caplog.records
    assert f"({ended.task_id}) failed: ResultNotSerializable: " in record.getMessage()
    assert record.exc_info is None
    assert [] == dtq_app.errors


async def test_a_handler_that_raises_a_cancellation_of_its_own_has_failed(dtq_app: App) -> None:
    await dtq_app.client.submit("cancels_itself")

    (ended,) = await dtq_app.drain()

    assert "CancelledError" == ended.error_class
    assert ["CancelledError"] == [type(error).__name__ for error in dtq_app.errors]
