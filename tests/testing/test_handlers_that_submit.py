"""Handlers submit through the app that runs them, from a thread and on the loop; what cannot work is refused first."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from dtq.testing import App, SyncApp
from tests.testing import submitting_tasks


@pytest.fixture
def dtq_tasks() -> object:
    return submitting_tasks


@pytest.fixture
def plain_app(dtq_sync_app: SyncApp, monkeypatch: pytest.MonkeyPatch) -> SyncApp:
    monkeypatch.setattr(submitting_tasks, "plain", [dtq_sync_app.client])
    monkeypatch.setattr(submitting_tasks, "awaited", [dtq_sync_app.async_client])
    return dtq_sync_app


@pytest.fixture
def async_app(dtq_app: App, monkeypatch: pytest.MonkeyPatch) -> App:
    monkeypatch.setattr(submitting_tasks, "plain", [dtq_app.sync_client])
    monkeypatch.setattr(submitting_tasks, "awaited", [dtq_app.client])
    return dtq_app


@pytest.mark.parametrize(("parent", "of"), [("parent_in_thread", "a thread"), ("parent", "a loop")])
def test_a_handler_submits_in_a_plain_test(plain_app: SyncApp, parent: str, of: str) -> None:
    plain_app.client.submit(parent)

    ended, child = plain_app.drain()

    assert (parent, child.task_id) == (ended.task_type, ended.result)
    assert f"child of {of}" == child.result


@pytest.mark.parametrize(("parent", "of"), [("parent_in_thread", "a thread"), ("parent", "a loop")])
async def test_a_handler_submits_in_an_async_test(async_app: App, parent: str, of: str) -> None:
    await async_app.client.submit(parent)

    ended, child = await async_app.drain()

    assert (parent, child.task_id) == (ended.task_type, ended.result)
    assert f"child of {of}" == child.result


def test_a_plain_client_on_the_loop_is_refused_before_it_submits(plain_app: SyncApp) -> None:
    plain_app.client.submit("blocking_parent")

    (ended,) = plain_app.drain()

    assert ("dead_lettered", "RuntimeError") == (ended.status, ended.error_class)
    assert "an async handler must await its client: give it dtq_sync_app.async_client" in str(ended.error_message)


async def test_a_plain_client_on_the_tests_loop_is_refused_before_it_submits(async_app: App) -> None:
    await async_app.client.submit("blocking_parent")

    (ended,) = await async_app.drain()

    assert "RuntimeError" == ended.error_class
    assert "sync_client is for sync handlers: await dtq_app.client here" in str(ended.error_message)


async def test_a_plain_client_has_nothing_to_run_on_before_the_app_runs(async_app: App) -> None:
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(async_app.sync_client.submit, "child")

    with pytest.raises(RuntimeError, match="sync_client works while the app runs handlers"):
        asked.result()


@pytest.mark.parametrize("parent", ["waiting_parent_in_thread", "waiting_parent"])
def test_a_handler_that_waits_for_a_task_is_told_that_it_blocks_a_slot(plain_app: SyncApp, parent: str) -> None:
    plain_app.client.submit(parent)

    ended, child = plain_app.drain()

    assert "RuntimeError" == ended.error_class
    assert "a handler must not wait for other tasks" in str(ended.error_message)
    assert child.succeeded


def test_any_thread_may_submit(plain_app: SyncApp) -> None:
    with ThreadPoolExecutor(8) as pool:
        submitted = list(pool.map(lambda _: plain_app.client.submit("child"), range(100)))

    assert {one.task_id for one in submitted} == {task.task_id for task in plain_app.drain()}
