"""Counts what one piece of work takes, in a process of its own: `python -m tests.performance.counting WHAT URL`.

Prints one JSON object: Python calls (of functions, and of coroutines each time they go on), round trips to Redis and
the bytes sent on them, and the commands that Redis ran, those inside scripts among them; each a task, or a second
where nothing was to do. Nothing of it depends on how fast the machine is.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

from redis import Redis
from redis.asyncio.connection import AbstractConnection

from dtq import AsyncClient, Submission, TaskContext, task
from dtq.entrypoints import loops
from dtq.entrypoints.config import load
from dtq.entrypoints.container import Container, build, take_over_logging, worker_id_of
from dtq.handlers.registry import Registry

TASKS: Final = 1000
WARM: Final = 200
BATCH: Final = 100
IDLE_S: Final = 4.0
SETTLED_S: Final = 1.0
PAYLOAD: Final = {"i": 123, "x": "x" * 200}
UPKEEP: Final = frozenset({"beat", "lead", "listen", "sweeps", "tick"})
"""The loops of a worker that do the same each second, whatever runs: a slower machine counts more of them a task."""

OUR_OWN: Final = ("info", "config", "client", "hello")

_send: Final = AbstractConnection.send_packed_command


@dataclass(slots=True)
class Count:
    """What was counted so far."""

    calls: int = 0
    trips: int = 0
    sent_bytes: int = 0
    commands: int = 0


class Counter:
    """Counts between ``begin`` and ``end``: calls in this thread, trips of all but the loops that are *left_out*."""

    def __init__(self, url: str, *, left_out: frozenset[str] = frozenset()) -> None:
        self._left_out = left_out
        self._redis: Any = Redis.from_url(url)
        self._count = Count()
        self._counts = False
        setattr(AbstractConnection, "send_packed_command", self._sender())  # noqa: B010 - a type checker forbids it

    def _sender(self) -> Callable[..., Awaitable[None]]:
        counter = self

        async def send(connection: AbstractConnection, command: Iterable[bytes], *args: Any, **options: Any) -> None:
            current = asyncio.current_task()
            if counter._counts and current is not None and current.get_name() not in counter._left_out:
                counter._count.trips += 1
                counter._count.sent_bytes += sum(map(len, command))
            await _send(connection, command, *args, **options)

        return send

    def begin(self) -> None:
        """Count from now on."""
        self._count = Count(commands=-self._commands())
        self._counts = True
        sys.setprofile(self._profile)

    def end(self) -> Count:
        """Count no longer."""
        sys.setprofile(None)
        self._counts = False
        self._count.commands += self._commands()
        return self._count

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename != __file__:
            self._count.calls += 1

    def _commands(self) -> int:
        stats = self._redis.info("commandstats")
        return sum(of["calls"] for name, of in stats.items() if not name.removeprefix("cmdstat_").startswith(OUR_OWN))


def each(count: Count, *, number: float) -> dict[str, float]:
    """Return what one of *number* took."""
    totals = {"calls": count.calls, "trips": count.trips, "bytes": count.sent_bytes, "commands": count.commands}
    return {name: total / number for name, total in totals.items()}


class Handlers:
    """The measured tasks; the first of them begin to be counted when the worker is warm."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self.count = Count()
        self._runs = 0
        self.stop: Callable[[], None] = lambda: None

    def ran(self) -> None:
        """Note a run."""
        self._runs += 1
        if self._runs == WARM:
            self._counter.begin()
        if self._runs == WARM + TASKS:
            self.count = self._counter.end()
            self.stop()

    def registry(self) -> Registry:
        """Return them as a worker knows them."""

        @task("noop")
        async def noop(payload: dict[str, Any], ctx: TaskContext) -> None:  # noqa: ARG001 - every handler takes both
            self.ran()

        return Registry.of(noop)


def a_worker(url: str, *, registry: Registry, concurrency: int) -> Container:
    """Return the parts of a worker process as it is run by users, logs and metrics among them."""
    settings = load(options={"DTQ_REDIS_URL": url, "DTQ_WORKER_CONCURRENCY": str(concurrency)}).settings
    container = build(settings, registry=registry, service="worker", worker_id=worker_id_of(settings))
    take_over_logging(container)
    container.metrics().watch_worker(lambda: container.worker().active)
    return container


async def drained(url: str, *, concurrency: int) -> dict[str, float]:
    """Count the run of a task by a worker, tasks waiting."""
    handlers = Handlers(Counter(url, left_out=UPKEEP))
    registry = handlers.registry()
    async with AsyncClient(url, tasks=[handler.function for handler in registry]) as client:
        for _ in range(0, WARM + TASKS, BATCH):
            await client.submit_many([Submission("noop", PAYLOAD)] * BATCH)
    worker = a_worker(url, registry=registry, concurrency=concurrency).worker()
    handlers.stop = worker.request_stop
    await worker.run()
    return each(handlers.count, number=TASKS)


async def submitted(url: str) -> dict[str, float]:
    """Count the submission of a task, one by one."""
    counter = Counter(url)
    async with AsyncClient(url, tasks=[handler.function for handler in Handlers(counter).registry()]) as client:
        for number in range(WARM + TASKS):
            if number == WARM:
                counter.begin()
            await client.submit("noop", PAYLOAD)
        return each(counter.end(), number=TASKS)


async def submitted_in_batches(url: str) -> dict[str, float]:
    """Count the submission of a task, a hundred at a time."""
    counter = Counter(url)
    async with AsyncClient(url, tasks=[handler.function for handler in Handlers(counter).registry()]) as client:
        for number in range(0, WARM + TASKS, BATCH):
            if number == WARM:
                counter.begin()
            await client.submit_many([Submission("noop", PAYLOAD)] * BATCH)
        return each(counter.end(), number=TASKS)


async def idle(url: str) -> dict[str, float]:
    """Count a second of a worker that has nothing to do."""
    counter = Counter(url)
    container = a_worker(url, registry=Handlers(counter).registry(), concurrency=10)
    working = asyncio.ensure_future(container.worker().run())
    await asyncio.sleep(SETTLED_S)
    counter.begin()
    await asyncio.sleep(IDLE_S)
    count = counter.end()
    container.worker().request_stop()
    await working
    return each(count, number=IDLE_S)


def main() -> None:
    """Count what the command line names, and print it."""
    what, url = sys.argv[1:]
    os.environ["DTQ_LOG_LEVEL"] = "INFO"
    work: Callable[[], Coroutine[Any, Any, dict[str, float]]] = {
        "drain at 10": lambda: drained(url, concurrency=10),
        "drain at 100": lambda: drained(url, concurrency=100),
        "submit": lambda: submitted(url),
        "batch": lambda: submitted_in_batches(url),
        "idle": lambda: idle(url),
    }[what]
    with loops.runner() as runner:
        found = runner.run(work())
    print(json.dumps(found))  # noqa: T201 - the answer of this program


if __name__ == "__main__":
    main()
