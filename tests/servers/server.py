"""RedisServer: a real Redis or Valkey in a test's hands."""

import socket
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from tests.servers.docker_socket import require_listener
from tests.servers.engine import AppendFsync, Engine, Options
from tests.servers.kinds import Kind, find_program
from tests.servers.process import ProcessEngine

READY_TIMEOUT_S = 20.0
POLL_S = 0.005


class ServerDiedError(Exception):
    """A server that did not come up; the message ends with the last lines of its log."""


class RedisServer:
    """A server of a known kind that a test may kill, pause and start again; a context manager."""

    def __init__(self, engine: Engine, *, kind: Kind | Literal["url"]) -> None:
        self._engine = engine
        self.kind = kind

    @classmethod
    def start(
        cls,
        kind: Kind,
        *,
        data_dir: Path | None = None,
        appendfsync: AppendFsync = "no",
        port: int = 0,
        arguments: Sequence[str] = (),
    ) -> Self:
        """Start a server on a free loopback port and return it when it answers."""
        options = Options(data_dir=data_dir, appendfsync=appendfsync, port=port, arguments=tuple(arguments))
        server = cls(_engine_of(kind, options), kind=kind)
        server.restart()
        return server

    @property
    def url(self) -> str:
        """Where it listens; stays the same when it is started again."""
        return self._engine.url

    @property
    def port(self) -> int:
        """The port it listens on, also while it is down."""
        return self._engine.port

    @property
    def pid(self) -> int:
        """The process as this machine sees it; a new one after each restart."""
        return self._engine.pid

    def kill(self) -> None:
        """SIGKILL: what was not yet written to disk is lost."""
        self._engine.kill()

    def stop(self) -> None:
        """End it in good order; its data stays, and restart() brings it back."""
        self._engine.stop()

    def restart(self) -> None:
        """Start it again on the same port and data, in good order if it still runs."""
        self._engine.stop()
        self._engine.launch()
        self.wait_ready()

    def pause(self) -> None:
        """Freeze it: connections stay open and nothing is answered."""
        self._engine.pause()

    def resume(self) -> None:
        """Let a frozen server go on."""
        self._engine.resume()

    def close(self) -> None:
        """End it for good and remove what it left."""
        self._engine.remove()

    def wait_ready(self, *, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Return when it answers a PING, also after it has read its data."""
        end = time.monotonic() + timeout_s
        while not _answers(self._engine):
            if not self._engine.alive() or time.monotonic() > end:
                self._engine.stop()
                raise ServerDiedError(f"the {self.kind} server is not ready:\n{self._engine.log()[-2000:]}")
            time.sleep(POLL_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _engine_of(kind: Kind, options: Options) -> Engine:
    if kind != "container":
        return ProcessEngine(find_program(kind), options=options)
    require_listener()
    # imported late: it costs 0.3 s and most runs need no container
    from tests.servers.container import ContainerEngine, image_at_hand  # noqa: PLC0415 - see above

    return ContainerEngine(image_at_hand(), options=options)


def _answers(engine: Engine) -> bool:
    try:
        with socket.create_connection((engine.host, engine.port), timeout=1.0) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
    except OSError:
        return False
