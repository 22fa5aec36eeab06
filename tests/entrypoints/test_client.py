"""One client, whichever way its tasks go."""

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import msgspec
import pytest
from dependency_injector import providers

from dtq import AsyncClient, Client, Submission, TaskContext, task
from dtq.domain.errors import (
    BrokerUnavailable,
    CancelRequested,
    DtqError,
    IdempotencyInProgress,
    InvalidTask,
    OutcomeUnknown,
    PayloadTooLarge,
    QueueFull,
    TaskNotFound,
    TaskTerminal,
    Unauthorized,
    UnknownTaskType,
    UnsuitableBroker,
)
from dtq.domain.status import TaskStatus
from dtq.domain.task import TaskId
from dtq.entrypoints.client.direct import BrokerTransport
from dtq.entrypoints.client.http import HttpTransport
from dtq.entrypoints.client.refusals import UnexpectedAnswer, error_of, refusal_of
from dtq.entrypoints.client.results import Submitted
from dtq.entrypoints.config import load
from dtq.entrypoints.container import Container, build, connect
from dtq.entrypoints.http.app import create_app
from dtq.entrypoints.http.errors import problem_of
from dtq.entrypoints.part_options import backend_options
from dtq.handlers import Registry
from tests.entrypoints.recorder import Recorder

KEY = "s3cret-key"
SOME_ID = "0" * 32


class Greeting(msgspec.Struct):
    name: str


@task("greet")
def greet(payload: Greeting, ctx: TaskContext) -> str:
    del ctx
    return payload.name


def a_container(**settings: str) -> Container:
    environment = {f"DTQ_{name.upper()}": value for name, value in settings.items()}
    loaded = load(environment=environment).settings
    container = build(loaded, registry=Registry.of(greet), service="api")
    container.backend.override(providers.Object(connect("memory://", options=backend_options(loaded))))
    container.log.override(providers.Object(Recorder()))
    return container


def over_http(container: Container, *, retries: int = 3, spoil: Callable[[httpx.Request], Any] | None = None) -> Any:
    """A way to an API in this process; *spoil* sees every answer before the client does."""
    app: Any = create_app(container)
    return HttpTransport(
        "http://api", api_key=KEY, timeout=10, retries=retries, inner=Spoiled(httpx.ASGITransport(app), spoil)
    )


class Spoiled(httpx.AsyncBaseTransport):
    def __init__(self, inner: httpx.AsyncBaseTransport, spoil: Callable[[httpx.Request], Any] | None) -> None:
        self._inner = inner
        self._spoil = spoil

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        return response if self._spoil is None else self._spoil(request) or response


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


class Lost:
    """Loses the first answers."""

    def __init__(self, number: int, *, status: int | None = None) -> None:
        self.left = number
        self.requests = 0
        self._status = status

    def __call__(self, request: httpx.Request) -> httpx.Response | None:
        self.requests += 1
        if self.left <= 0:
            return None
        self.left -= 1
        if self._status is not None:
            return httpx.Response(self._status, text="<html>")
        raise httpx.ReadError("gone", request=request)


@pytest.mark.parametrize("status", [None, 502, 503, 504])
async def test_a_lost_answer_submits_no_second_task(status: int | None) -> None:
    container, lost = a_container(api_key=KEY), Lost(2, status=status)
    async with AsyncClient(over_http(container, spoil=lost)) as client:
        one = await client.submit("greet", {"name": "Ada"})
        lost.left = 1
        many = await client.submit_many([Submission("greet", {"name": "Ada"})] * 3)

    stored = await container.tasks().recent(queue=None, status=None, limit=10)
    assert {task.task_id for task in stored} == {one.task_id, *(answer.task_id for answer in many)}  # type: ignore[union-attr]  # none was refused
    assert 4 == len(stored)


async def test_a_cancel_whose_answer_was_lost_is_done() -> None:
    container, lost = a_container(api_key=KEY), Lost(0)
    async with AsyncClient(over_http(container, spoil=lost)) as client:
        submitted = await client.submit("greet", {"name": "Ada"})
        lost.left = 1

        canceled = await client.cancel(submitted.task_id)

    assert TaskStatus.CANCELLED is canceled.status


async def test_without_retries_nothing_is_sent_twice_and_no_key_is_made_up() -> None:
    container, lost = a_container(api_key=KEY), Lost(0)
    async with AsyncClient(over_http(container, retries=0, spoil=lost)) as client:
        submitted = await client.submit("greet", {"name": "Ada"})
        lost.left, lost.requests = 1, 0
        with pytest.raises(OutcomeUnknown, match="http://api gave no answer: ReadError"):
            await client.submit("greet", {"name": "Ada"})
        state = await client.get(submitted.task_id)

    assert (None, 2) == (state.idempotency_key, lost.requests)


async def test_a_read_that_gets_no_answer_leaves_nothing_unknown() -> None:
    async with AsyncClient(over_http(a_container(), retries=1, spoil=Lost(9))) as client:
        with pytest.raises(BrokerUnavailable) as caught:
            await client.get(SOME_ID)

    assert BrokerUnavailable is type(caught.value)


async def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    async with AsyncClient("http://user:secret@127.0.0.1:9", retries=1) as client:
        with pytest.raises(BrokerUnavailable, match="cannot be reached: ConnectError") as caught:
            await client.submit("greet", {"name": "Ada"})

    assert BrokerUnavailable is type(caught.value)
    assert "secret" not in str(caught.value)


async def test_a_server_that_is_silent_is_given_up() -> None:
    class Silent(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            del request
            raise TimeoutError

    async with AsyncClient(HttpTransport("http://api", api_key="", timeout=1, retries=0, inner=Silent())) as client:
        with pytest.raises(OutcomeUnknown, match="did not answer within 1 s"):
            await client.submit("greet", {"name": "Ada"})
        with pytest.raises(BrokerUnavailable, match="did not answer within 1 s"):
            await client.get(SOME_ID)


async def test_a_wrong_key_is_refused() -> None:
    async with AsyncClient(over_http(a_container(api_key="another"))) as client:
        submitted = await client.submit("greet", {"name": "Ada"})
        with pytest.raises(Unauthorized):
            await client.cancel(submitted.task_id)


@pytest.mark.parametrize(("status", "text"), [(200, "<html>"), (418, "<html>"), (409, '{"status":409,"code":"NEW"}')])
async def test_an_answer_that_nobody_knows_is_told_as_it_is(status: int, text: str) -> None:
    async with AsyncClient(over_http(a_container(), spoil=lambda _: httpx.Response(status, text=text))) as client:
        with pytest.raises(UnexpectedAnswer, match=f"status {status}"):
            await client.get(SOME_ID)


ERRORS: list[DtqError] = [
    PayloadTooLarge(size=9, limit=3, field="tasks", unit="submissions"),
    QueueFull("schedule_full", value=7, limit=5, retry_after_s=3),
    UnknownTaskType("mail:v2"),
    IdempotencyInProgress(TaskId(SOME_ID), status=None),
    TaskNotFound(SOME_ID),
    TaskTerminal(TaskId(SOME_ID), status=TaskStatus.EXPIRED),
    CancelRequested(TaskId(SOME_ID)),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.code)
def test_an_error_comes_through_http_whole(error: DtqError) -> None:
    problem = problem_of(error)

    found = error_of(refusal_of(msgspec.json.encode(problem), status=problem.status), task_id=SOME_ID)

    assert (type(error), str(error), vars(error)) == (type(found), str(found), vars(found))


@pytest.mark.parametrize("error", [BrokerUnavailable("x"), OutcomeUnknown("x"), UnsuitableBroker("x")])
def test_troubles_of_the_broker_keep_their_kind(error: DtqError) -> None:
    problem = problem_of(error)

    assert type(error) is type(error_of(refusal_of(msgspec.json.encode(problem), status=problem.status)))


@pytest.fixture
def sync_client() -> Iterator[Client]:
    with Client(over_http(a_container(api_key=KEY))) as client:
        yield client


def test_the_sync_client_needs_no_loop(sync_client: Client) -> None:
    submitted = sync_client.submit("greet", Greeting(name="Ada"), delay_seconds=5)
    (many,) = sync_client.submit_many([Submission("greet", {"name": "Bob"})])

    assert isinstance(many, Submitted)
    assert {"name": "Ada"} == sync_client.get(submitted.task_id).payload
    assert TaskStatus.CANCELLED is sync_client.cancel(submitted.task_id).status
    assert sync_client.wait(submitted.task_id, timeout=5).is_terminal
    with pytest.raises(TaskNotFound):
        sync_client.get(SOME_ID)


def test_any_thread_may_use_the_sync_client(sync_client: Client) -> None:
    found: list[Submitted] = []
    threads = [
        threading.Thread(target=lambda: found.append(sync_client.submit("greet", {"name": "Ada"}))) for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 5 == len({submitted.task_id for submitted in found})


def test_a_closed_sync_client_leaves_no_thread() -> None:
    client = Client("http://127.0.0.1:9", retries=0)
    with pytest.raises(BrokerUnavailable):
        client.get(SOME_ID)
    client.close()
    client.close()

    assert "dtq-client" not in {thread.name for thread in threading.enumerate()}
