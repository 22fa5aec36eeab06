"""A task is shown as soon as it has ended, where that is asked."""

import asyncio

import pytest

from dtq.adapters.memory.clock import settle
from dtq.application import waiting
from tests.contract.conftest import harness, open_harness
from tests.contract.harness import Harness
from tests.contract.steps import cancel, submit
from tests.entrypoints.conftest import Api
from tests.entrypoints.serving import serving

__all__ = ["harness", "open_harness"]


async def test_the_answer_comes_when_the_task_ends(harness: Harness) -> None:
    task = await submit(harness)
    async with serving(harness.backend) as client, asyncio.timeout(20):
        call = asyncio.create_task(client.get(f"/api/v1/tasks/{task.task_id}?wait=60", timeout=30))
        await settle(turns=100)
        assert not call.done()

        await cancel(harness, task)
        answer = await call

    assert (200, "cancelled") == (answer.status_code, answer.json()["status"])


async def test_the_time_over_the_task_is_shown_as_it_is(api: Api) -> None:
    task_id = await api.submit()

    answer = await api.client.get(f"/api/v1/tasks/{task_id}?wait=0.05")

    assert (200, "queued") == (answer.status_code, answer.json()["status"])


async def test_an_unknown_task_is_not_waited_for(api: Api) -> None:
    answer = await api.client.get(f"/api/v1/tasks/{'0' * 32}?wait=60")

    assert (404, "TASK_NOT_FOUND") == (answer.status_code, answer.json()["code"])


async def test_too_many_that_wait_are_told_to_come_back(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "MAX_WAITERS", 0)
    task_id = await api.submit()

    answer = await api.client.get(f"/api/v1/tasks/{task_id}?wait=60")

    assert (503, "TOO_MANY_CLIENTS", "1") == (
        answer.status_code,
        answer.json()["code"],
        answer.headers["retry-after"],
    )
