"""An API on the memory adapter, in one process with its test."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest
from dependency_injector import providers
from litestar.testing import AsyncTestClient

from dtq import TaskContext, task
from dtq.entrypoints.config import load
from dtq.entrypoints.container import Container, build, connect
from dtq.entrypoints.http.app import create_app
from dtq.entrypoints.part_options import backend_options
from dtq.handlers import Registry
from dtq.ports.backend import Backend
from tests.entrypoints.recorder import Recorder

Client = AsyncTestClient[Any]


@task("greet")
def greet(payload: dict[str, object], ctx: TaskContext) -> dict[str, object]:
    del ctx
    return payload


class Api:
    """One running API: its client, its container, and what it noted."""

    def __init__(self, container: Container, *, client: Client, backend: Backend, notes: Recorder) -> None:
        self.container = container
        self.client = client
        self.backend = backend
        self.notes = notes

    async def submit(self, **fields: object) -> str:
        body = {"task_type": "greet", "payload": {}, **fields}
        answer = await self.client.post("/api/v1/tasks", json=body)
        assert 202 == answer.status_code, answer.text
        task_id: str = answer.json()["task_id"]
        return task_id

    async def stored(self) -> Sequence[object]:
        """Everything that a submission could have left behind."""
        tasks = (await self.backend.broker.recent(queue=None, status=None, limit=500)).tasks
        return [*tasks, await self.backend.broker.next_due()]


MakeApi = Callable[..., Awaitable[Api]]


@pytest.fixture
async def make_api() -> AsyncIterator[MakeApi]:
    """Start an API with DTQ_ settings of one's own, on a backend of one's own."""
    async with AsyncExitStack() as stack:

        async def make(environment: dict[str, str] | None = None, *, backend: Backend | None = None) -> Api:
            settings = load(environment=environment or {}).settings
            container = build(settings, registry=Registry.of(greet), service="api")
            ours = backend or connect("memory://", options=backend_options(settings))
            container.backend.override(providers.Object(ours))
            notes = Recorder()
            container.log.override(providers.Object(notes))
            client = await stack.enter_async_context(AsyncTestClient(create_app(container)))
            return Api(container, client=client, backend=ours, notes=notes)

        yield make


@pytest.fixture
async def api(make_api: MakeApi) -> Api:
    return await make_api()
