"""The client straight on a real server."""

import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
from redis import Redis

from dtq import AsyncClient, Client, Submission, TaskContext, task
from dtq.domain.errors import BrokerUnavailable, InvalidTask, UnknownTaskType
from dtq.domain.status import TaskStatus
from dtq.entrypoints.client.results import Submitted
from dtq.entrypoints.config import SettingsError
from tests.entrypoints.client_ways import Greeting
from tests.servers import RedisServer


@task("greet")
def greet(payload: Greeting, ctx: TaskContext) -> str:
    del ctx
    return payload.name


@pytest.fixture
def url(redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[str]:
    prefix = f"client-{id(request)}"
    monkeypatch.setenv("DTQ_KEY_PREFIX", prefix)
    yield redis_server.url
    with Redis.from_url(redis_server.url) as server:
        for key in server.scan_iter(f"{prefix}:*"):
            server.delete(key)


async def test_tasks_go_straight_to_the_broker(url: str) -> None:
    async with AsyncClient(url, tasks=[greet]) as client:
        submitted = await client.submit("greet", Greeting(name="Ada"))
        state = await client.get(submitted.task_id)
        with pytest.raises(InvalidTask, match=r"payload\.name: required"):
            await client.submit("greet", {})
        with pytest.raises(UnknownTaskType):
            await client.submit("other")
        with pytest.raises(TimeoutError, match="it is queued"):
            await client.wait(submitted.task_id, timeout=0.05)
        await client.cancel(submitted.task_id)
        ended = await client.wait(submitted.task_id)

    assert {"name": "Ada"} == state.payload
    assert state.idempotency_key is None
    assert TaskStatus.CANCELLED is ended.status


def test_without_a_loop_too(url: str) -> None:
    module = ModuleType("tasks_of_a_client")
    vars(module)["greet"] = greet
    with Client(url, tasks=[module]) as client:
        answers = client.submit_many(Submission("greet", {"name": str(number)}) for number in range(1200))

        assert 1200 == len({answer.task_id for answer in answers if isinstance(answer, Submitted)})


async def test_the_environment_names_the_tasks_where_the_caller_does_not(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("tasks_of_a_client")
    vars(module)["greet"] = greet
    monkeypatch.setitem(sys.modules, "tasks_of_a_client", module)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("DTQ_TASK_MODULES", "tasks_of_a_client")

    async with AsyncClient(url) as client:
        assert TaskStatus.QUEUED is (await client.submit("greet", {"name": "Ada"})).status


FIRST_CALL = """
import asyncio, sys
from dtq import AsyncClient, task

@task("greet")
def greet(payload, ctx):
    pass

async def submit():
    known = set(sys.modules)
    await client.submit("greet")
    await client.close()
    return [name for name in sys.modules if name not in known]

client = AsyncClient(sys.argv[1], tasks=[greet])
print(*asyncio.run(submit()))
"""


def test_the_first_call_holds_no_loop_up_by_loading_modules(url: str) -> None:
    ran = subprocess.run([sys.executable, "-c", FIRST_CALL, url], capture_output=True, text=True, check=True)

    loaded = {name.partition(".")[0] for name in ran.stdout.split()}
    assert not loaded & {"dtq", "redis", "structlog", "rich", "msgspec"}


async def test_a_broker_that_is_not_there_is_told() -> None:
    async with AsyncClient("redis://127.0.0.1:9/0", tasks=[greet]) as client:
        with pytest.raises(BrokerUnavailable):
            await client.submit("greet", {"name": "Ada"})


def test_a_url_that_nothing_serves_is_refused() -> None:
    with pytest.raises(SettingsError, match="scheme is one of"):
        AsyncClient("ftp://example.org")
