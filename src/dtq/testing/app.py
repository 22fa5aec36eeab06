"""A whole dtq in memory, for tests with an event loop."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from dependency_injector import providers

from dtq.entrypoints.client import AsyncClient, TaskState
from dtq.entrypoints.client.direct import BrokerTransport, Tasks, registry_of
from dtq.entrypoints.config import load
from dtq.entrypoints.container import build, standing_still
from dtq.entrypoints.part_options import backend_options
from dtq.handlers.registry import Registry
from dtq.testing.recorder import Recorder, shown
from dtq.testing.running import MiddleChance, Runner, TooMuchWork

LIMIT: Final = 1_000
PATIENCE: Final = 5.0
_SHOWN: Final = 10


class App:
    """A broker in memory, the handlers of a test, a client, and a clock that stands still until it is moved.

    Nothing runs by itself: `drain` runs what is due, and what becomes due by that. Each app is a world of its own.
    """

    def __init__(self, tasks: Tasks | Registry, *, settings: Mapping[str, str] | None = None) -> None:
        """Take task modules or declared functions, and DTQ_ settings; those of the environment do not count."""
        registry = tasks if isinstance(tasks, Registry) else registry_of(tasks)
        loaded = load(environment=settings or {})
        self._recorder = Recorder()
        self._container = build(loaded.settings, registry=registry, service="testing")
        backend, self._clock = standing_still(backend_options(loaded.settings))
        self._broker = backend.broker
        self._container.backend.override(providers.Object(backend))
        self._container.log.override(providers.Object(self._recorder))
        self._container.chance.override(providers.Object(MiddleChance()))
        self._registry = registry
        self._runner: Runner | None = None
        self.transport = _DrainingTransport(self, BrokerTransport(self._container))
        self.client = AsyncClient(self.transport)

    @property
    def now(self) -> datetime:
        """The time that the clock stands at."""
        return self._clock.now()

    async def advance(self, by: timedelta) -> None:
        """Move the clock; what becomes due by that runs at the next `drain`."""
        await self._clock.advance(by)

    async def drain(self, *, limit: int = LIMIT, patience: float = PATIENCE) -> list[TaskState]:
        """Run everything that is due, or will be, moving the clock to each moment; return the tasks that ended.

        Retries and delayed tasks run too. Raises TooMuchWork after *limit* attempts, and StillRunning where a handler
        takes longer than *patience* seconds of real time.
        """
        return await self._ended_by(self._drain, limit=limit, patience=patience)

    async def run_due(self, *, limit: int = LIMIT, patience: float = PATIENCE) -> list[TaskState]:
        """Run what is due now and nothing else, without moving the clock; return the tasks that ended."""
        return await self._ended_by(self._run_due, limit=limit, patience=patience)

    def enqueued(
        self, task_type: str | None = None, *, payload: Any = None, queue: str | None = None
    ) -> list[TaskState]:
        """Return the tasks that have not ended yet and are as described, in the order of their submission."""
        wanted = None if payload is None else msgspec.to_builtins(payload)
        return [
            task
            for task in self._recorder.alive()
            if task_type in {None, task.task_type}
            and queue in {None, task.queue}
            and (wanted is None or wanted == task.payload)
        ]

    def assert_enqueued(
        self, task_type: str, *, payload: Any = None, queue: str | None = None, count: int | None = None
    ) -> list[TaskState]:
        """Return the tasks that wait and are as described; fail unless there are *count*, by default at least one.

        The payload is compared as a whole; it may be of the handler's payload type.
        """
        found = self.enqueued(task_type, payload=payload, queue=queue)
        if len(found) == count or (count is None and found):
            return found
        words = [task_type, "" if payload is None else repr(payload), "" if queue is None else f"in {queue}"]
        alive = self._recorder.alive()
        others = "\n".join(f"  {shown(task)}" for task in alive[:_SHOWN]) or "  nothing"
        more = f"\n  and {len(alive) - _SHOWN} more" if len(alive) > _SHOWN else ""
        expected = "at least 1" if count is None else str(count)
        described = " ".join(filter(None, words))
        raise AssertionError(f"{len(found)} enqueued of {described}, expected {expected}; waiting are:\n{others}{more}")

    def close(self) -> None:
        """Let go of whatever still runs."""
        if self._runner is not None:
            self._runner.close()

    async def _ended_by(
        self, run: Callable[["_Attempts"], Awaitable[None]], *, limit: int, patience: float
    ) -> list[TaskState]:
        seen = len(self._recorder.ended)
        if self._runner is None:
            self._runner = Runner(self._container, registry=self._registry, observer=self._recorder)
        await run(_Attempts(self._runner, limit=limit, patience=patience))
        return [await self.client.get(task_id) for task_id in self._recorder.ended[seen:]]

    async def _run_due(self, attempts: "_Attempts") -> None:
        while await attempts.next():
            pass

    async def _drain(self, attempts: "_Attempts") -> None:
        while True:
            await self._run_due(attempts)
            due = await self._broker.next_due()
            if due is None:
                return
            await self._clock.advance(due - self.now)


class _Attempts:
    """What one drain may run."""

    def __init__(self, runner: Runner, *, limit: int, patience: float) -> None:
        self._runner = runner
        self._limit = limit
        self._patience = patience
        self._number = 0

    async def next(self) -> bool:
        """Run one task that is due now; return whether there was one."""
        if not await self._runner.run_one(patience=self._patience):
            return False
        self._number += 1
        if self._number > self._limit:
            raise TooMuchWork(f"more than {self._limit} attempts were due: raise limit, or look for tasks without end")
        return True


class _DrainingTransport:
    """The way to an app's broker, on which waiting for a task means to run what is due."""

    def __init__(self, app: App, inner: BrokerTransport) -> None:
        self._app = app
        self._inner = inner
        self.submit = inner.submit
        self.submit_many = inner.submit_many
        self.get = inner.get
        self.cancel = inner.cancel
        self.close = inner.close

    async def ended(self, task_id: str, *, within: float) -> TaskState:
        """Run everything, and return the task."""
        del within
        await self._app.drain()
        return await self._inner.get(task_id)
