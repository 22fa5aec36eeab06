"""The HTTP API as a process, served by uvicorn. `python -m dtq.entrypoints.api` is `dtq api run`."""

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

import uvicorn

from dtq.domain.errors import BrokerUnavailable, UnsuitableBroker
from dtq.domain.text import class_name
from dtq.entrypoints import loops
from dtq.entrypoints.config import Settings
from dtq.entrypoints.container import Container, build, take_over_logging
from dtq.entrypoints.http import stream_protocol
from dtq.entrypoints.http.app import create_app, prepare
from dtq.entrypoints.http.stream_origin import origins_that_act
from dtq.entrypoints.http.stream_protocol import StreamHttp
from dtq.handlers.registry import Registry

FIRST_LOOK: Final = timedelta(seconds=2)
GRACE: Final = timedelta(seconds=10)
BACKLOG: Final = 2048
UNUSABLE: Final = 2
FAILED: Final = 1


def run(settings: Settings, *, registry: Registry) -> int:
    """Serve until a signal says stop; return the exit code."""
    container = build(settings, registry=registry, service="api")
    take_over_logging(container)
    log = container.log()
    try:
        listener = _listen(settings.api_host, settings.api_port)
    except OSError as error:
        log.log("ERROR", "cannot_listen", host=settings.api_host, port=settings.api_port, reason=str(error))
        return FAILED
    if not registry.task_types:
        log.noticed("no_task_types", reason="DTQ_TASK_MODULES is empty: every submission will be refused")
    if not settings.api_key and not settings.is_local:
        reason = f"{settings.api_host} can be reached from outside and DTQ_API_KEY is not set: anybody may cancel tasks"
        log.noticed("open_to_everybody", reason=reason)
    with loops.runner() as runner:
        return runner.run(_serve(container, listener))


class _Server(uvicorn.Server):
    """uvicorn without its own signal handling, which ends the process by the signal instead of an exit code."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to this module."""
        yield

    def stop(self) -> None:
        """Finish open requests, then end; asked again, end now."""
        self.force_exit = self.should_exit
        self.should_exit = True


def http_of(settings: Settings) -> type[StreamHttp]:
    """Return the protocol of an API that knows by which names it may be asked."""

    class OwnHttp(StreamHttp):
        origins = origins_that_act(settings)

    return OwnHttp


def uvicorn_config(app: Any, *, http: type[StreamHttp] = StreamHttp) -> uvicorn.Config:
    """Return how uvicorn is to serve *app*."""
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        http=http,
        ws=stream_protocol.StreamSocket,
        **stream_protocol.SOCKET_OPTIONS,
        timeout_graceful_shutdown=int(GRACE.total_seconds()),
    )


async def _serve(container: Container, listener: socket.socket) -> int:
    log = container.log()
    is_prepared = False
    try:
        async with asyncio.timeout(FIRST_LOOK.total_seconds()):
            await prepare(container.backend())
            is_prepared = True
    except UnsuitableBroker as error:
        log.log("ERROR", "api_cannot_start", code=error.code, reason=str(error))
        return UNUSABLE
    except (BrokerUnavailable, TimeoutError) as error:
        log.noticed("broker_not_ready", error_class=class_name(error))
    app = create_app(container, is_prepared=is_prepared)
    server = _Server(uvicorn_config(app, http=http_of(container.settings())))
    loop = asyncio.get_running_loop()

    def stop() -> None:
        # streams have no end of their own that could be waited for
        container.fan_out().close()
        server.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    loops.spare_what_stays()
    log.log("INFO", "api_listens", url=_url(listener))
    await server.serve(sockets=[listener])
    return 0 if server.started else FAILED


def _listen(host: str, port: int) -> socket.socket:
    """Listen on the first address that *host* names."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        stream_protocol.prepare(listener)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


if __name__ == "__main__":
    from dtq.entrypoints.cli import main

    sys.exit(main(["api", "run", *sys.argv[1:]]))
