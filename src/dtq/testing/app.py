"""A whole dtq in memory, for tests with an event loop."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Self

from dependency_injector import providers

from dtq.entrypoints.client import AsyncClient, Client, TaskState
from dtq.entrypoints.client.direct import BrokerTransport, Tasks
from dtq.entrypoints.container import build, standing_still
from dtq.entrypoints.part_options import backend_options
from dtq.handlers.registry import Registry
from dtq.testing.enqueued import Enqueued
from dtq.testing.failures import RUNS_A_HANDLER, Failures
from dtq.testing.given import registry_given, settings_given
from dtq.testing.recorder import Recorder
from dtq.testing.running import MiddleChance, Runner, TooMuchWork
from dtq.testing.threads import FromThreads

LIMIT: Final = 1_000
PATIENCE: Final = 5.0


class App:
    """A broker in memory, the handlers of a test, a client, and a clock that stands still until it is moved.

    Nothing runs by itself: `drain` runs what is due, and what becomes due by that. Each app is a world of its own.
    """

    def __init__(self, tasks: Tasks | Registry | None, *, settings: Mapping[str, str] | None = None) -> None:
        """Take task modules, their names, or declared functions, and DTQ_ settings; the environment's do not count."""
        registry = registry_given(tasks)
        read = settings_given(settings)
        self._failures = Failures()
        self._recorder = Recorder(self._failures.failed)
        self._enqueued = Enqueued(self._recorder, registry=registry)
        self._container = build(read, registry=registry, service="testing")
        backend, self._clock = standing_still(backend_options(read))
        self._broker = backend.broker
        self._container.backend.override(providers.Object(backend))
        self._container.log.override(providers.Object(self._recorder))
        self._container.chance.override(providers.Object(MiddleChance()))
        self._handlers = self._failures.watched(registry)
        self._runner: Runner | None = None
        self._turn = asyncio.Lock()
        self._threads = FromThreads()
        self.transport = _DrainingTransport(BrokerTransport(self._container), run_until_ended=self._wait_for)
        self._client = AsyncClient(self.transport)
        self._sync_client = Client(self.transport, run=self._threads.run)

    @property
    def client(self) -> AsyncClient:
        """The client of the test, of async handlers, and of whatever else runs on its loop."""
        return self._client

    @property
    def sync_client(self) -> Client:
        """A client for sync handlers: they run in threads, and cannot await."""
        return self._sync_client

    @property
    def errors(self) -> list[BaseException]:
        """What handlers have raised, in this order; to raise one again shows where it came from."""
        return list(self._failures.errors)

    @property
    def now(self) -> datetime:
        """The time that the clock stands at."""
        return self._clock.now()

    async def advance(self, by: timedelta) -> None:
        """Move the clock; what becomes due by that runs at the next `drain`."""
        if not isinstance(by, timedelta):
            raise TypeError(f"advance takes a timedelta, such as timedelta(seconds=60), not {by!r}")
        if by < timedelta():
            raise ValueError(f"advance moves the clock forward, not by {by}")
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
        return self._enqueued.find(task_type, payload=payload, queue=queue)

    def assert_enqueued(
        self, task_type: str, *, payload: Any = None, queue: str | None = None, count: int | None = None
    ) -> list[TaskState]:
        """Return the tasks that wait and are as described; fail unless there are *count*, by default at least one.

        A Struct or a dataclass is compared as such, defaults filled in; a mapping as a whole with what was submitted.
        """
        return self._enqueued.require(task_type, payload=payload, queue=queue, count=count)

    def close(self) -> None:
        """Let go of whatever still runs."""
        if self._runner is not None:
            self._runner.close()

    async def __aenter__(self) -> Self:
        """Close at the end of the block."""
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close."""
        self.close()

    async def _ended_by(
        self, run: Callable[["_Attempts"], Awaitable[None]], *, limit: int, patience: float
    ) -> list[TaskState]:
        if RUNS_A_HANDLER.get():
            raise RuntimeError(
                "a handler must not wait for other tasks, nor drain: it would keep its slot meanwhile, which a worker "
                "may need for just those tasks. Submit the next step, and let it go on from there"
            )
        async with self._turn:
            self._threads.loop = asyncio.get_running_loop()
            seen = len(self._recorder.ended)
            if self._runner is None:
                self._runner = Runner(self._container, registry=self._handlers, observer=self._recorder)
            await run(_Attempts(self._runner, limit=limit, patience=patience))
            return [await self._client.get(task_id) for task_id in self._recorder.ended[seen:]]

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

    async def _wait_for(self, has_ended: Callable[[], Awaitable[bool]], within: timedelta) -> None:
        """Run what is due until *has_ended*, and move the clock by *within* at most."""
        ends_at = self.now + within

        async def wait(attempts: _Attempts) -> None:
            while not await has_ended():
                if await attempts.next():
                    continue
                due = await self._broker.next_due()
                is_in_time = due is not None and due <= ends_at
                await self._clock.advance(max(timedelta(), (due if due and is_in_time else ends_at) - self.now))
                if not is_in_time:
                    return

        await self._ended_by(wait, limit=LIMIT, patience=PATIENCE)


class _Attempts:
    """What one drain may run."""

    def __init__(self, runner: Runner, *, limit: int, patience: float) -> None:
        self._runner = runner
        self._limit = limit
        self._patience = patience
        self._number = 0

    async def next(self) -> bool:
        """Run one task that is due now; return whether there was one."""
        may_run = self._number < self._limit
        if not await self._runner.run_one(patience=self._patience, may_run=may_run):
            return False
        self._number += 1
        if not may_run:
            raise TooMuchWork(f"more than {self._limit} attempts were due: raise limit, or look for tasks without end")
        return True


class _DrainingTransport:
    """The way to an app's broker, on which waiting for a task means to run what is due until it ends."""

    def __init__(
        self,
        inner: BrokerTransport,
        *,
        run_until_ended: Callable[[Callable[[], Awaitable[bool]], timedelta], Awaitable[None]],
    ) -> None:
        self._inner = inner
        self._run_until_ended = run_until_ended
        self.submit = inner.submit
        self.submit_many = inner.submit_many
        self.get = inner.get
        self.cancel = inner.cancel
        self.close = inner.close

    async def ended(self, task_id: str, *, within: float) -> TaskState:
        """Return the task when it has ended, or as it is after *within* seconds of the test's clock."""

        async def has_ended() -> bool:
            return (await self._inner.get(task_id)).is_terminal

        await self._run_until_ended(has_ended, timedelta(seconds=within))
        return await self._inner.get(task_id)
