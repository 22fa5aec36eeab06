"""What a case measures on: a server, programs of dtq, sizes; and what several groups do there."""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from benchmarks import handlers
from benchmarks.programs import DTQ, SIZES, Program, wait_until_done
from benchmarks.redis_server import RECOMMENDED, MeasuredServer, directives
from benchmarks.stamps import Stamps
from dtq import AsyncClient, Submission
from dtq.adapters.redis.keys import Keyspace
from dtq.entrypoints import loops
from tests.servers import Kind
from tests.servers.process import LOOPBACK, free_port

KEYS: Final = Keyspace("dtq")
PAYLOAD: Final = "x" * 200
BATCH: Final = 500
READY_WITHIN_S: Final = 60.0
SHARES: Final = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
SETTLE_S: Final = 1.0
"""How long an idle program is left alone before it is looked at."""

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on the event loop that dtq's own programs run on."""
    with loops.runner() as runner:
        return runner.run(work)


def pause(seconds: float) -> None:
    """Let programs be for a while."""
    time.sleep(seconds)


def client_of(url: str) -> AsyncClient:
    """Return a client of the broker, or of an API, that knows the measured tasks."""
    return AsyncClient(url, tasks=handlers)


def submission(number: int, *, task_type: str = handlers.NOOP, text: str = PAYLOAD, **options: Any) -> Submission:
    """Return the task that stamps slot *number*."""
    return Submission(task_type, {"i": number, "x": text}, **options)


class Ground:
    """One server for all cases, emptied before each, and a folder for logs; a context manager."""

    def __init__(self, *, kind: Kind | None, scale: float) -> None:
        self._kind = kind
        self.scale = scale
        self._folder = tempfile.TemporaryDirectory(prefix="dtq-benchmarks-")
        self.server = MeasuredServer(kind)
        # the client in this process reads its settings as any program does
        os.environ.update(SIZES)

    def sized(self, full: int, *, least: int = 200) -> int:
        """Return how many tasks a case is to take that takes *full* in a full run."""
        return max(min(full, least), int(full * self.scale))

    def recommended(self) -> MeasuredServer:
        """Start another server, as deploy/redis.conf has it; the caller closes it."""
        return MeasuredServer(self._kind, arguments=directives(RECOMMENDED))

    def worker(
        self,
        stamps: Stamps,
        *,
        concurrency: int,
        queue: str = "default",
        settings: Mapping[str, str] | None = None,
        name: str = "worker",
    ) -> Program:
        """Start a worker of the measured tasks."""
        arguments = ["worker", "run", "--tasks", handlers.__name__, "--queue", queue]
        return self._program(
            [*DTQ, *arguments, "--concurrency", str(concurrency)],
            name=name,
            settings={"DTQ_REDIS_URL": self.server.url, **stamps.environment(), **(settings or {})},
        )

    def python(self, *arguments: str, stamps: Stamps | None = None) -> Program:
        """Start a program of the benchmarks themselves."""
        settings = {} if stamps is None else stamps.environment()
        return self._program([DTQ[0], *arguments], name="other", settings=settings)

    def api(self) -> tuple[Program, int]:
        """Start an API that knows the measured tasks; return it with its port."""
        port = free_port()
        command = [*DTQ, "api", "run", "--host", LOOPBACK, "--port", str(port)]
        settings = {"DTQ_REDIS_URL": self.server.url, "DTQ_TASK_MODULES": handlers.__name__}
        return self._program(command, name="api", settings=settings), port

    def _program(self, command: list[str], *, name: str, settings: Mapping[str, str]) -> Program:
        return Program(command, log=Path(self._folder.name) / f"{name}.log", settings=settings)

    def known_workers(self) -> int:
        """Return how many workers have announced themselves since the server was emptied."""
        return int(self.server.redis.scard(KEYS.workers))

    def fill(
        self, submissions: Iterable[Submission], *, server: MeasuredServer | None = None, batch: int = BATCH
    ) -> None:
        """Submit tasks in batches. Raises what one of them was refused with."""
        run(_filled((server or self.server).url, submissions, batch_size=batch))

    def close(self) -> None:
        """End the server and remove the folder."""
        self.server.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


async def _filled(url: str, submissions: Iterable[Submission], *, batch_size: int) -> None:
    async with client_of(url) as client:
        batch: list[Submission] = []
        for one in submissions:
            batch.append(one)
            if len(batch) == batch_size:
                checked(await client.submit_many(batch))
                batch = []
        checked(await client.submit_many(batch))


def checked(answers: Iterable[object]) -> None:
    """Raise what one of a batch was refused with."""
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer


def percentile(values: Iterable[float], share: float) -> float:
    """Return the value that *share* of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def percentiles(values: Collection[float], *names: str, what: str = "") -> dict[str, float]:
    """Return percentiles of milliseconds, each under its name: `p99.9` of *what* is `{what}p99.9_ms`."""
    return {f"{what}{name}_ms": percentile(values, SHARES[name]) for name in names}


def measured_drain(
    ground: Ground, stamps: Stamps, *, start: Callable[[], AbstractContextManager[Program]], count: int, within_s: float
) -> dict[str, float]:
    """Start a worker and measure how it runs *count* of the tasks that wait.

    The rate is that between the first and the last of them, so that no start of a process is in it; CPU is taken
    between 5 % and 97 %.
    """
    server = ground.server
    server.reset()
    reads = server.reads()
    marks: list[tuple[int, float, float]] = []
    with start() as program:

        def is_done() -> bool:
            done = stamps.done()
            if (not marks and done >= 0.05 * count) or (marks and done <= 0.97 * count):
                marks[1:] = [(done, program.cpu_s(), server.cpu_s())] if marks else []
                marks[:1] = marks[:1] or [(done, program.cpu_s(), server.cpu_s())]
            return done >= count

        wait_until_done(is_done, within_s=within_s, program=program)
        calls, trips = server.calls(), server.reads() - reads
        runs, peak_mib = stamps.runs(), program.peak_mib()
    times = sorted(filter(None, stamps.times_ns()))[:count]
    figures = {
        "tasks_per_s": (count - 1) / ((times[-1] - times[0]) / 1e9),
        "commands": sum(calls.values()) / runs,
        "script_calls": calls.get("evalsha", 0) / runs,
        "reads": trips / runs,
        "extra_runs": float(stamps.runs() - stamps.done()),
        "peak_mib": peak_mib,
    }
    if len(marks) > 1 and marks[1][0] > marks[0][0]:
        done = marks[1][0] - marks[0][0]
        figures["worker_us"] = (marks[1][1] - marks[0][1]) / done * 1e6
        figures["redis_us"] = (marks[1][2] - marks[0][2]) / done * 1e6
    return figures


async def together(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run coroutines side by side to their ends."""
    async with asyncio.TaskGroup() as group:
        for one in work:
            group.create_task(one)
