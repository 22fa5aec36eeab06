"""Whoever requeues a task is told where its idempotency key stands for it no more."""

import json

import pytest
from msgspec.structs import replace

from dtq.application.dead_letters import DeadLetterService, Requeued
from dtq.domain.audit import Actor
from dtq.domain.outcome import classify
from dtq.entrypoints.cli import main
from dtq.ports.backend import Backend
from tests.entrypoints.command_fixtures import backend, printed
from tests.entrypoints.commands import Printed, end, submitted
from tests.entrypoints.conftest import Api
from tests.entrypoints.driver import finish_with, start_next

__all__ = ["backend", "printed"]

BROKEN = classify(ValueError("the lamp is broken"), retryable=())


@pytest.fixture
def detached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each requeue find that the key went to another task meanwhile."""
    requeue = DeadLetterService.requeue

    async def without_its_key(service: DeadLetterService, task_id: str, *, by: Actor) -> Requeued:
        return replace(await requeue(service, task_id, by=by), is_detached=True)

    monkeypatch.setattr(DeadLetterService, "requeue", without_its_key)


async def a_dead_letter(api: Api) -> str:
    task_id = await api.submit(idempotency_key="key-1")
    await finish_with(api.backend, await start_next(api.backend), BROKEN)
    return task_id


async def test_the_answer_of_a_requeue_says_nothing_of_a_key_that_it_has(api: Api) -> None:
    task_id = await a_dead_letter(api)

    answer = await api.client.post(f"/api/v1/dlq/{task_id}/requeue")

    assert {"task_id": task_id, "status": "queued"} == answer.json()


@pytest.mark.usefixtures("detached")
async def test_the_answer_of_a_requeue_says_that_the_key_is_gone(api: Api) -> None:
    task_id = await a_dead_letter(api)

    answer = await api.client.post(f"/api/v1/dlq/{task_id}/requeue")

    assert {"task_id": task_id, "status": "queued", "idempotency_detached": True} == answer.json()


def a_dead_task(backend: Backend, printed: Printed) -> str:
    task_id = submitted(printed, "--idempotency-key", "key-1")
    end(backend, BROKEN)
    return task_id


@pytest.mark.usefixtures("detached")
def test_the_command_says_so_too(backend: Backend, printed: Printed) -> None:
    task_id = a_dead_task(backend, printed)

    assert 0 == main(["retry-dlq", task_id])

    assert f"{task_id} queued (its idempotency key stands for it no more)\n" == printed()[0]


@pytest.mark.usefixtures("detached")
def test_the_command_says_so_in_json(backend: Backend, printed: Printed) -> None:
    task_id = a_dead_task(backend, printed)

    assert 0 == main(["retry-dlq", task_id, "--json"])

    assert {"task_id": task_id, "status": "queued", "idempotency_detached": True} == json.loads(printed()[0])


@pytest.mark.usefixtures("detached")
def test_the_command_that_waits_says_so_on_the_side(backend: Backend, printed: Printed) -> None:
    task_id = a_dead_task(backend, printed)

    assert 9 == main(["retry-dlq", task_id, "--wait", "0"])

    assert f"dtq: {task_id}: its idempotency key stands for it no more" in printed()[1].splitlines()
