"""An API over a backend of the contract suite, in one event loop with its test."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
from dependency_injector import providers

from dtq import TaskContext, task
from dtq.entrypoints.config import load
from dtq.entrypoints.container import Container, build
from dtq.entrypoints.http.app import create_app
from dtq.handlers import Registry
from dtq.ports.backend import Backend
from tests.entrypoints.recorder import Recorder

KEY = "s3cret-key"
WITH_KEY = {"X-API-Key": KEY}


@task("greet")
def greet(payload: dict[str, object], ctx: TaskContext) -> dict[str, object]:
    del ctx
    return payload


def container_over(
    backend: Backend, *, settings: Mapping[str, str] | None = None, registry: Registry | None = None
) -> Container:
    """Put an API together whose every port is of *backend*; settings are DTQ_ names without their prefix."""
    environment = {f"DTQ_{name.upper()}": value for name, value in (settings or {}).items()}
    container = build(load(environment=environment).settings, registry=registry or Registry.of(greet), service="api")
    container.backend.override(providers.Object(backend))
    container.log.override(providers.Object(Recorder()))
    return container


@asynccontextmanager
async def serving(backend: Backend, **settings: str) -> AsyncIterator[httpx.AsyncClient]:
    """Serve, without the application's lifespan: the backend is the test's."""
    container = container_over(backend, settings=settings)
    app: Any = create_app(container)
    transport = httpx.ASGITransport(app, client=("192.0.2.7", 4711))
    async with httpx.AsyncClient(transport=transport, base_url="http://api") as client:
        yield client
    await container.fan_out().closed()
