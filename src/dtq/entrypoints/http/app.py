"""The Litestar application, put together from a container."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from functools import cache
from typing import Any, Final, TypeVar

from litestar import Litestar
from litestar.di import Provide

from dtq.application.requests import BESIDE_PAYLOAD_BYTES
from dtq.domain.admission import DEFAULT_QUEUE
from dtq.domain.errors import BrokerUnavailable, UnsuitableBroker
from dtq.domain.text import class_name, text_of
from dtq.entrypoints.container import Container
from dtq.entrypoints.http import health, metrics, routes, stream, stream_events, stream_socket
from dtq.entrypoints.http.auth import KeyGuard
from dtq.entrypoints.http.context import Application
from dtq.entrypoints.http.errors import exception_handlers
from dtq.entrypoints.http.openapi import openapi_config
from dtq.entrypoints.http.stream_origin import origins_that_act
from dtq.ports.backend import Backend
from dtq.ports.events import Observer

RETRY_PREPARATION: Final = timedelta(seconds=1)

T = TypeVar("T")
Lifespan = Callable[[Litestar], AbstractAsyncContextManager[None]]


def create_app(container: Container, *, is_prepared: bool = False) -> Litestar:
    """Build the application; the broker is not asked for anything before the first request or the lifespan.

    *is_prepared* says that ``prepare`` has succeeded already: done again, it would try every command once more.
    """
    settings = container.settings()
    socket = stream_socket.socket_at(settings.ws_path)
    return Application(
        route_handlers=[
            *routes.routers(settings, guard=_guard_of(container)),
            health.health,
            health.ready,
            metrics.metrics,
            stream_events.watch,
            socket,
        ],
        dependencies={
            "tasks": _provided(container.tasks),
            "waiting": _provided(container.waiting),
            "queues": _provided(container.queues),
            "dead_letters": _provided(container.dead_letters),
            "workers": _provided(container.workers),
            "explaining": _provided(container.explaining),
            "doctor": _provided(container.doctor),
            "trail": _provided(container.trail),
            "registry": _provided(container.registry),
            "backend": _provided(container.backend),
            "scrapes": _provided(cache(lambda: metrics.Scrapes(container.metrics(), readings=container.readings()))),
            "streams": _provided(cache(lambda: stream.streams_of(container))),
        },
        exception_handlers=exception_handlers(container.log()),
        ids=container.ids(),
        opt={"tasks": _asking(container.tasks), "clock": _asking(lambda: container.backend().clock)},
        lifespan=_lifespan(container, is_prepared=is_prepared),
        request_max_body_size=settings.max_payload_bytes + BESIDE_PAYLOAD_BYTES,
        openapi_config=openapi_config(container.rules(), registry=container.registry()),
        # bodies, headers and cookies are nobody's business: what is logged is logged by our own observer
        logging_config=None,
    )


def _guard_of(container: Container) -> KeyGuard:
    settings = container.settings()
    origins = origins_that_act(settings)
    return KeyGuard(key=settings.api_key, origins=origins, ids=container.ids(), observer=container.log())


def _provided(provider: Callable[[], T]) -> Provide:
    """Bring a provider of the container to Litestar's handlers: the only place where the two meet."""
    return Provide(_asking(provider), sync_to_thread=False)


def _asking(provider: Callable[[], T]) -> Callable[[], Any]:
    """Return a plain function: whatever else it is given, Litestar may copy."""

    def resolve() -> Any:
        return provider()

    return resolve


def _lifespan(container: Container, *, is_prepared: bool) -> list[Lifespan]:
    parts: list[Lifespan] = [
        lambda _: _closed_at_end(container.backend()),
        lambda _: stream.closed_at_end(container.fan_out()),
        lambda _: metrics.watched(container.lag(), shown_by=container.metrics()),
    ]
    if not is_prepared:
        parts.insert(1, lambda _: _preparing(container.backend(), observer=container.log()))
    return parts


async def prepare(backend: Backend) -> None:
    """Make the broker ready for the first request. Raises UnsuitableBroker and BrokerUnavailable."""
    await backend.server.prepare()
    await backend.queues.register(DEFAULT_QUEUE)


@contextlib.asynccontextmanager
async def _closed_at_end(backend: Backend) -> AsyncIterator[None]:
    yield
    await backend.server.close()


@contextlib.asynccontextmanager
async def _preparing(backend: Backend, *, observer: Observer) -> AsyncIterator[None]:
    """Prepare the broker in the background, for as long as that takes."""
    preparation = asyncio.create_task(_prepare_at_last(backend, observer=observer), name="prepare")
    try:
        yield
    finally:
        preparation.cancel()
        await asyncio.wait({preparation})


async def _prepare_at_last(backend: Backend, *, observer: Observer) -> None:
    while True:
        try:
            await prepare(backend)
        except (BrokerUnavailable, UnsuitableBroker) as error:
            observer.noticed("broker_not_ready", error_class=class_name(error), reason=text_of(error))
            await backend.clock.sleep(RETRY_PREPARATION)
        else:
            return
