"""Waiting for a task takes the test's time, and no more of it than was allowed."""

import asyncio
from datetime import timedelta

import pytest

from dtq import TaskNotFound
from dtq.testing import App, SyncApp
from tests.testing import example_tasks


@pytest.fixture
def dtq_tasks() -> object:
    return example_tasks


async def test_a_wait_ends_with_its_task_and_leaves_the_others(dtq_app: App) -> None:
    first = await dtq_app.client.submit("flaky", {"fails": 1})
    await dtq_app.client.submit("greet", {"name": "Ada"}, delay_seconds=9)
    began = dtq_app.now

    ended = await dtq_app.client.wait(first.task_id)

    assert (True, 2) == (ended.succeeded, ended.attempt)
    assert timedelta(seconds=1) == dtq_app.now - began
    dtq_app.assert_enqueued("greet", count=1)


@pytest.mark.parametrize("delay", [31, 86_400])
def test_a_wait_takes_no_longer_than_it_may(dtq_sync_app: SyncApp, delay: int) -> None:
    began = dtq_sync_app.now
    late = dtq_sync_app.client.submit("greet", {"name": "Ada"}, delay_seconds=delay)

    with pytest.raises(TimeoutError, match="has not ended within 30 s: it is pending"):
        dtq_sync_app.client.wait(late.task_id, timeout=30)

    assert timedelta(seconds=30) == dtq_sync_app.now - began


@pytest.mark.parametrize("delay", [30, 90])
def test_a_wait_that_is_long_enough_gets_its_task(dtq_sync_app: SyncApp, delay: int) -> None:
    late = dtq_sync_app.client.submit("greet", {"name": "Ada"}, delay_seconds=delay)

    assert dtq_sync_app.client.wait(late.task_id, timeout=delay).succeeded


def test_a_wait_of_no_time_runs_what_is_due(dtq_sync_app: SyncApp) -> None:
    submitted = dtq_sync_app.client.submit("greet", {"name": "Ada"})

    assert dtq_sync_app.client.wait(submitted.task_id, timeout=0).succeeded


def test_what_is_not_there_is_not_waited_for(dtq_sync_app: SyncApp) -> None:
    with pytest.raises(TaskNotFound):
        dtq_sync_app.client.wait("0" * 32)


async def test_several_may_be_waited_for_at_once(dtq_app: App) -> None:
    many = [await dtq_app.client.submit("flaky", {"fails": fails}) for fails in (0, 1, 2)]
    ended: dict[str, int] = {}

    async def wait(task_id: str) -> None:
        ended[task_id] = (await dtq_app.client.wait(task_id)).attempt

    async with asyncio.TaskGroup() as group:
        for one in many:
            group.create_task(wait(one.task_id))

    assert [1, 2, 3] == [ended[one.task_id] for one in many]
