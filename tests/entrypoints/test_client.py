"""One client, whichever way its tasks go."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from msgspec import ValidationError, convert, json

from dtq import AsyncClient, Submission
from dtq.application.tasks import TaskService
from dtq.domain.errors import (
    IdempotencyInProgress,
    InvalidTask,
    PayloadTooLarge,
    QueueFull,
    RecordUnreadable,
    TaskNotFound,
    TaskTerminal,
    UnknownTaskType,
)
from dtq.domain.json_text import written
from dtq.domain.status import TaskStatus
from dtq.entrypoints.client.direct import BrokerTransport, registry_of
from dtq.entrypoints.client.results import NoResult, Submitted, TaskState
from dtq.entrypoints.container import Container
from tests.entrypoints.client_ways import KEY, SOME_ID, Greeting, a_container, over_http


@pytest.fixture(params=["http", "broker"])
async def way(request: pytest.FixtureRequest) -> AsyncIterator[Callable[..., AsyncClient]]:
    containers: list[Container] = []

    def make(**settings: str) -> AsyncClient:
        containers.append(a_container(api_key=KEY, **settings))
        over = over_http if request.param == "http" else BrokerTransport
        return AsyncClient(over(containers[-1]))

    yield make
    for container in containers:
        await container.fan_out().closed()


async def test_a_task_can_be_submitted_seen_and_canceled(way: Callable[..., AsyncClient]) -> None:
    async with way() as client:
        submitted = await client.submit("greet", Greeting(name="Ada"), queue="mail", metadata={"n": 1}, delay_seconds=9)
        state = await client.get(submitted.task_id)
        canceled = await client.cancel(submitted.task_id)
        ended = await client.wait(submitted.task_id)

    assert Submitted(task_id=state.task_id, status=TaskStatus.PENDING) == submitted
    assert ({"name": "Ada"}, {"n": 1}, "mail", "greet") == (state.payload, state.metadata, state.queue, state.task_type)
    assert not state.is_terminal
    assert (submitted.task_id, TaskStatus.CANCELLED) == (canceled.task_id, canceled.status)
    assert ended.is_terminal
    assert not ended.succeeded


async def test_refusals_are_the_same_errors(way: Callable[..., AsyncClient]) -> None:
    async with way(max_queue_depth="2", max_payload_bytes="50") as client:
        with pytest.raises(InvalidTask, match=r"payload\.name: expected `str`, got `int`"):
            await client.submit("greet", {"name": 1})
        with pytest.raises(UnknownTaskType, match="'nothing'"):
            await client.submit("nothing")
        with pytest.raises(PayloadTooLarge, match="payload: 61 bytes, at most 50 are allowed"):
            await client.submit("greet", {"name": "x" * 50})
        first = await client.submit("greet", {"name": "Ada"}, idempotency_key="one")
        with pytest.raises(IdempotencyInProgress, match=first.task_id):
            await client.submit("greet", {"name": "Ada"}, idempotency_key="one")
        await client.submit("greet", {"name": "Ada"})
        with pytest.raises(QueueFull, match="queue_full: 2 of 2") as full:
            await client.submit("greet", {"name": "Ada"})
        assert ("queue_full", True) == (full.value.reason, full.value.retry_after_s >= 1)
        with pytest.raises(TaskNotFound, match=SOME_ID):
            await client.get(SOME_ID)
        with pytest.raises(TaskNotFound, match="no id"):
            await client.get("no id")
        await client.cancel(first.task_id)
        with pytest.raises(TaskTerminal) as terminal:
            await client.cancel(first.task_id)
        assert TaskStatus.CANCELLED is terminal.value.status
        with pytest.raises(TimeoutError, match="within 0 s: it is queued"):
            await client.wait((await client.submit("greet", {"name": "Ada"})).task_id, timeout=0)


async def test_a_record_that_cannot_be_read_is_the_same_error_too(
    way: Callable[..., AsyncClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def unreadable(_: TaskService, task_id: str) -> None:
        asked.append(task_id)
        raise RecordUnreadable(f"the record of task {task_id} cannot be read")

    monkeypatch.setattr(TaskService, "get", unreadable)
    async with way() as client:
        with pytest.raises(RecordUnreadable, match=f"the record of task {SOME_ID} cannot be read"):
            await client.get(SOME_ID)

    assert [SOME_ID] == asked


async def test_a_key_stands_for_one_task(way: Callable[..., AsyncClient]) -> None:
    async with way() as client:
        first = await client.submit("greet", {"name": "Ada"}, idempotency_key="one")
        await client.cancel(first.task_id)

        again = await client.submit("greet", {"name": "Ada"}, idempotency_key="one")

    assert Submitted(task_id=first.task_id, status=TaskStatus.CANCELLED, duplicate=True) == again


async def test_many_are_submitted_each_for_itself(way: Callable[..., AsyncClient]) -> None:
    many = [Submission("greet", {"name": str(number)}) for number in range(1001)]
    many[1:4] = [Submission("greet", {}), Submission("greet", {"name": float("inf")}), Submission("nothing")]
    async with way() as client:
        answers = await client.submit_many(iter(many))

    assert 1001 == len(answers)
    assert [InvalidTask, InvalidTask, UnknownTaskType] == [type(answer) for answer in answers[1:4]]
    assert all(isinstance(answer, Submitted) for answer in (answers[0], *answers[4:]))
    assert 998 == len({answer.task_id for answer in answers if isinstance(answer, Submitted)})


@pytest.mark.parametrize(
    ("result", "kind"), [({1: 0.5}, dict[int, float]), (b"ab", bytes), ({1, 2}, set[int])], ids=repr
)
def test_a_result_is_read_into_its_type(result: object, kind: type[object]) -> None:
    task = a_task(status="succeeded", result=json.decode(written(result)))

    assert result == task.result_as(kind)


def a_task(**members: object) -> TaskState:
    given = {
        **dict.fromkeys(("task_id", "task_type", "queue"), "x"),
        **dict.fromkeys(("priority", "attempt", "max_attempts", "timeout_ms"), 1),
        **dict.fromkeys(("created_at", "available_at"), "2026-01-01T00:00:00Z"),
    }
    return convert({**given, **members}, TaskState)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            {"status": "dead_lettered", "error_class": "KeyError", "error_message": "'name'"},
            r"task x has no result: it is dead_lettered \(KeyError: 'name'\)",
        ),
        ({"status": "running"}, "task x has no result: it is running$"),
        ({"status": "cancelled"}, "task x has no result: it is cancelled$"),
        ({"status": "succeeded", "result_truncated": True}, "it was larger than DTQ_RESULT_MAX_BYTES"),
        ({"status": "succeeded", "result_expired": True}, "it was kept for DTQ_RESULT_RETENTION_S, which is over"),
    ],
)
def test_what_has_no_result_says_why(members: dict[str, object], message: str) -> None:
    with pytest.raises(NoResult, match=message):
        a_task(**members).result_as(int)


def test_a_result_of_another_type_is_told_from_none() -> None:
    with pytest.raises(ValidationError):
        a_task(status="succeeded", result="1").result_as(int)


@pytest.mark.parametrize("wrong", [1, {"task_type": "greet"}, "greet"])
async def test_what_is_no_submission_is_refused_by_its_place(way: Callable[..., AsyncClient], wrong: Any) -> None:
    async with way() as client:
        with pytest.raises(TypeError, match=r"submissions\[1\] must be a dtq.Submission, not "):
            await client.submit_many([Submission("greet", {"name": "Ada"}), wrong])
        with pytest.raises(TypeError, match=r"submit_many takes a list of dtq\.Submission, not one"):
            await client.submit_many(Submission("greet", {"name": "Ada"}))  # type: ignore[arg-type]  # the mistake


def test_tasks_of_a_client_may_be_named() -> None:
    assert {"echo_task"} < registry_of("dtq.demo").task_types
    assert registry_of(["dtq.demo"]).task_types == registry_of("dtq.demo").task_types
    with pytest.raises(TypeError, match="neither a task module"):
        registry_of(5)  # type: ignore[arg-type]  # the mistake itself
