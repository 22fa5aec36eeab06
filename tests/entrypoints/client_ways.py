"""Ways for a client to tasks in memory."""

from collections.abc import Callable
from typing import Any

import httpx
import msgspec
from dependency_injector import providers

from dtq import TaskContext, task
from dtq.entrypoints.client.http import HttpTransport
from dtq.entrypoints.config import load
from dtq.entrypoints.container import Container, build, connect
from dtq.entrypoints.http.app import create_app
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
