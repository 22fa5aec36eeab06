"""A whole dtq in memory, for tests without an event loop."""

from collections.abc import Coroutine, Mapping
from datetime import datetime, timedelta
from typing import Any, Self, TypeVar

from dtq.entrypoints.client import AsyncClient, Client, TaskState
from dtq.entrypoints.client.direct import Tasks
from dtq.entrypoints.client.synchronous import LoopThread, nothing
from dtq.handlers.registry import Registry
from dtq.testing.app import LIMIT, PATIENCE, App
from dtq.testing.failures import RUNS_A_HANDLER
from dtq.testing.threads import runs_a_loop

T = TypeVar("T")


class SyncApp:
    """An App whose methods are plain calls. Its event loop runs in a thread of its own, as that of Client does."""

    def __init__(self, tasks: Tasks | Registry | None, *, settings: Mapping[str, str] | None = None) -> None:
        """Take what App takes."""
        self._app = App(tasks, settings=settings)
        self._loop = LoopThread()
        self._client = Client(self._app.transport, run=self._run)

    @property
    def client(self) -> Client:
        """The client of the test, of sync handlers, and of any other thread."""
        return self._client

    @property
    def async_client(self) -> AsyncClient:
        """A client for async handlers: they must not block the loop that they run on."""
        return self._app.client

    @property
    def now(self) -> datetime:
        """The time that the clock stands at."""
        return self._app.now

    @property
    def errors(self) -> list[BaseException]:
        """What handlers have raised, in this order; see App.errors."""
        return self._app.errors

    def advance(self, by: timedelta) -> None:
        """Move the clock; see App.advance."""
        self._run(self._app.advance(by))

    def drain(self, *, limit: int = LIMIT, patience: float = PATIENCE) -> list[TaskState]:
        """Run everything that is due, or will be; see App.drain."""
        return self._run(self._app.drain(limit=limit, patience=patience))

    def run_due(self, *, limit: int = LIMIT, patience: float = PATIENCE) -> list[TaskState]:
        """Run what is due now; see App.run_due."""
        return self._run(self._app.run_due(limit=limit, patience=patience))

    def enqueued(
        self, task_type: str | None = None, *, payload: Any = None, queue: str | None = None
    ) -> list[TaskState]:
        """Return the tasks that wait and are as described; see App.enqueued."""
        return self._app.enqueued(task_type, payload=payload, queue=queue)

    def assert_enqueued(
        self, task_type: str, *, payload: Any = None, queue: str | None = None, count: int | None = None
    ) -> list[TaskState]:
        """Return the tasks that wait and are as described, or fail; see App.assert_enqueued."""
        return self._app.assert_enqueued(task_type, payload=payload, queue=queue, count=count)

    def close(self) -> None:
        """Let go of whatever still runs, and of the loop."""
        self._app.close()
        self._loop.end(nothing)

    def __enter__(self) -> Self:
        """Close at the end of the block."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close."""
        self.close()

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if not runs_a_loop():
            return self._loop.run(coroutine)
        coroutine.close()
        if RUNS_A_HANDLER.get():
            raise RuntimeError("an async handler must await its client: give it dtq_sync_app.async_client")
        raise RuntimeError("dtq_sync_app is for tests without an event loop: use dtq_app here")
