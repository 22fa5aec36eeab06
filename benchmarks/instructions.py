"""`python -m benchmarks.instructions`: what each script costs inside Redis, counted in instructions of the server.

The server runs under valgrind's callgrind, so the counts do not depend on the machine's speed nor on what else it
does; what the server does by itself now and then makes them differ by one per cent. It is that of the distribution: one
with an allocator of its own may not run there.
"""

import argparse
import asyncio
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Any, Final

from benchmarks.ground import PAYLOAD, run
from benchmarks.programs import Program, wait_until_done
from benchmarks.tables import number, table
from dtq.adapters.redis import connect
from dtq.adapters.system import UuidIds
from dtq.domain.admission import BrokerLimits
from dtq.domain.change import Change
from dtq.domain.delivery import Claim, FailurePolicy, finish, start
from dtq.domain.task import Task, WorkerId
from dtq.ports.answers import Applied
from dtq.ports.backend import Backend, BackendOptions
from tests.factories import NOW, QUEUE, a_success, an_admission
from tests.servers.kinds import MissingServerError, find_program
from tests.servers.process import LOOPBACK, free_port

MISSING: Final = 2
READY_WITHIN_S: Final = 120.0
DUMPED_WITHIN_S: Final = 30.0
TOTAL: Final = re.compile(r"^(?:totals|summary): (\d+)", re.MULTILINE)
WORKER: Final = WorkerId("worker-00000001")
LIMITS: Final = BrokerLimits(queue_depth=1_000_000, scheduled=1_000_000, queues=1000)
TURNS: Final = "submit, then by turns"
OPTIONS: Final = ("--compress-strings=no", "--compress-pos=no")


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedServer:
    """A server under callgrind."""

    url: str
    folder: Path
    pid: int

    def counted(self) -> int:
        """Return how many instructions the server has run since this was asked the last time."""
        for old in self.folder.glob("counts.*"):
            old.unlink()
        subprocess.run(["callgrind_control", "-d", str(self.pid)], check=True, capture_output=True)  # noqa: S607 - of valgrind
        ends_at = time.monotonic() + DUMPED_WITHIN_S
        while time.monotonic() < ends_at:
            for path in self.folder.glob("counts.*"):
                total = TOTAL.search(path.read_text())
                if total is not None:
                    return int(total[1])
            time.sleep(0.05)
        raise TimeoutError("callgrind has written no counts")


@contextmanager
def counted_server(program: Path) -> Iterator[CountedServer]:
    """Start a server under callgrind, and end it."""
    with tempfile.TemporaryDirectory(prefix="dtq-instructions-") as name:
        folder, port = Path(name), free_port()
        counting = ["valgrind", "--tool=callgrind", *OPTIONS, f"--callgrind-out-file={folder}/counts.%p"]
        serving = ["--port", str(port), "--bind", LOOPBACK, "--save", "", "--dir", str(folder)]
        with Program([*counting, str(program), *serving], log=folder / "server.log", settings={}) as server:
            ready = "Ready to accept connections"
            wait_until_done(lambda: ready in server.log.read_text(), within_s=READY_WITHIN_S, program=server)
            yield CountedServer(url=f"redis://{LOOPBACK}:{port}/0", folder=folder, pid=server.pid)


class Life:
    """Takes tasks through their life, a batch at a time, one kind of step after the other."""

    def __init__(self, backend: Backend, *, batch: int) -> None:
        self._broker = backend.broker
        self._batch = batch
        self._ids = UuidIds()
        self._policy = FailurePolicy()
        self._fetched: list[Sequence[Any]] = []
        self._started: list[Sequence[Change]] = []

    async def submit(self, count: int) -> None:
        """Create tasks."""
        payload = f'{{"i":123,"x":"{PAYLOAD}"}}'
        for _ in range(0, count, self._batch):
            admissions = [an_admission(payload=payload) for _ in range(self._batch)]
            _check(await self._broker.create(admissions, limits=LIMITS))

    async def fetch(self, count: int) -> None:
        """Read their entries."""
        for _ in range(0, count, self._batch):
            found = await self._broker.fetch(QUEUE, worker=WORKER, limit=self._batch, reap_idle=None, held=())
            self._fetched.append(found.deliveries)

    async def start(self, _: int) -> None:
        """Record that they run."""
        for deliveries in self._fetched:
            changes = [self._start_of(delivery) for delivery in deliveries]
            _check(await self._broker.commit(changes))
            self._started.append(changes)

    def _start_of(self, delivery: Any) -> Change:
        claim = Claim(worker=WORKER, lease=self._ids.lease(), receipt=delivery.receipt)
        change = start(delivery.task, claim=claim, now=NOW, token=self._ids.token(), policy=self._policy)
        assert isinstance(change, Change), change  # noqa: S101 - a new task is to run, whatever else a start may decide
        return change

    async def finish(self, _: int) -> None:
        """Record that they have ended."""
        for started in self._started:
            _check(await self._broker.commit([self._finish_of(change.after) for change in started]))

    async def turns(self, count: int) -> None:
        """Take tasks from their submission on as a busy worker does: ends are recorded in the call that fetches."""
        await self.submit(count)
        ends: list[Change] = []
        while True:
            found = await self._broker.fetch(
                QUEUE, worker=WORKER, limit=self._batch - len(ends), reap_idle=None, held=(), after=ends
            )
            _check(found.answers)
            if not found.deliveries:
                return
            changes = [self._start_of(delivery) for delivery in found.deliveries]
            _check(await self._broker.commit(changes))
            ends = [self._finish_of(change.after) for change in changes]

    def _finish_of(self, task: Task) -> Change:
        lease, token = task.lease, self._ids.token()
        assert lease is not None, task  # noqa: S101 - it runs
        change = finish(
            task, lease=lease, outcome=a_success("null"), now=NOW, token=token, policy=self._policy, jitter=0
        )
        assert isinstance(change, Change), change  # noqa: S101 - it runs under this lease
        return change


def _check(answers: Sequence[object]) -> None:
    for answer in answers:
        if not isinstance(answer, Applied):
            raise TypeError(f"a step was not made: {answer!r}")


async def counts_of(server: CountedServer, *, batch: int, count: int) -> dict[str, float]:
    """Return the instructions a task of each kind of step."""
    backend = connect(server.url, options=BackendOptions())
    await backend.server.prepare()
    life = Life(backend, batch=batch)
    steps: dict[str, Callable[[int], Coroutine[Any, Any, None]]] = {
        "submit": life.submit,
        "fetch": life.fetch,
        "start": life.start,
        "finish": life.finish,
        TURNS: life.turns,
    }
    found = {}
    for name, step in steps.items():
        await asyncio.to_thread(server.counted)
        await step(count)
        found[name] = await asyncio.to_thread(server.counted) / count
    await backend.server.close()
    return found


def main() -> int:
    """Count and print; 2 where there is nothing to count with."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=__doc__)
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 10, 100])
    chosen = parser.parse_args()
    if which("valgrind") is None or which("callgrind_control") is None:
        print("SKIPPED: valgrind is not installed, and nothing else counts instructions", file=sys.stderr)
        return MISSING
    try:
        program = find_program("path")
    except MissingServerError as error:
        print(f"SKIPPED: {error}", file=sys.stderr)
        return MISSING
    columns = {}
    for batch in chosen.batches:
        with counted_server(program) as server:
            columns[batch] = run(counts_of(server, batch=batch, count=max(chosen.tasks, batch)))
    names = list(next(iter(columns.values())))
    rows = [[name, *(number(column[name]) for column in columns.values())] for name in names]
    # a row in the middle sums up what a task costs by steps, the last one has another way to go
    rows.insert(-1, ["in all", *(number(sum(column.values()) - column[TURNS]) for column in columns.values())])
    print(table(["instructions a task", *(f"batches of {batch}" for batch in columns)], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
