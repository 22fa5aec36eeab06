"""A whole dtq on one server: its settings, its processes, and a look at what it stores."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, cast

import httpx
from redis import Redis

from tests.integration.programs import Program, run_dtq, until
from tests.servers import RedisServer

ENDED = frozenset({"succeeded", "failed", "dead_lettered", "cancelled", "expired"})
HANDLERS = "tests.integration.handlers"


class Deployment:
    """Starts processes that share a server and a key prefix, and ends all of them."""

    def __init__(self, server: RedisServer, *, prefix: str, folder: Path, settings: Mapping[str, str]) -> None:
        self.server = server
        self.prefix = prefix
        self.folder = folder
        self.settings: Mapping[str, str] = {
            "DTQ_REDIS_URL": server.url,
            "DTQ_KEY_PREFIX": prefix,
            "DTQ_TASK_MODULES": f"dtq.demo,{HANDLERS}",
            "DTQ_VISIBILITY_TIMEOUT_S": "2",
            "DTQ_HEARTBEAT_INTERVAL_S": "0.5",
            "DTQ_RETRY_BASE_DELAY": "0.05",
            "DTQ_RETRY_MAX_DELAY": "1",
            **settings,
        }
        self.redis = Redis.from_url(server.url, decode_responses=True)
        self._stack = contextlib.ExitStack()
        self._started = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*cast("tuple[Any, Any, Any]", error))
        self.redis.close()

    def start(self, *arguments: str, **settings: str) -> Program:
        """Start a command that stays, with settings beside the deployment's."""
        self._started += 1
        log = self.folder / f"{self._started:03}-{arguments[0]}.log"
        return self._stack.enter_context(Program(*arguments, settings={**self.settings, **settings}, log=log))

    def worker(self, *arguments: str, **settings: str) -> Program:
        """Start a worker and return it when it has announced itself."""
        program = self.start("worker", "run", *arguments, **settings)
        until(lambda: program.logged("event", event_type="WORKER_STARTED") or not program.is_alive(), what="a worker")
        return program

    def api(self, **settings: str) -> "ApiProgram":
        """Start an API on a free port and return it when it listens."""
        program = self.start("api", "run", "--host", "127.0.0.1", "--port", "0", **settings)
        lines = until(lambda: program.logged("api_listens"), what="an API")
        client = self._stack.enter_context(httpx.Client(base_url=lines[0]["url"], timeout=30))
        until(lambda: _is_there(client), what="an answer of the API")
        return ApiProgram(program, client)

    def cli(self, *arguments: str, given: str = "", **settings: str) -> Any:
        """Run a command to its end."""
        return run_dtq(*arguments, settings={**self.settings, **settings}, given=given)

    def key(self, *parts: str) -> str:
        return ":".join((self.prefix, *parts))

    def task(self, task_id: str) -> dict[str, str]:
        """The record of a task as it is stored."""
        return cast("dict[str, str]", self.redis.hgetall(self.key("task", task_id)))

    def status(self, task_id: str) -> str:
        return self.task(task_id).get("status", "")

    def wait_for_end(self, task_id: str, *, within_s: float = 30.0) -> str:
        """Return the final status of a task."""
        return until(
            lambda: status if (status := self.status(task_id)) in ENDED else "",
            within_s=within_s,
            what=f"the end of {task_id}",
        )

    def wait_for_age(self, seconds: float) -> None:
        """Return when the server has been up for so long; until then workers reap nothing."""
        until(lambda: self.redis.info("server")["uptime_in_seconds"] > seconds, within_s=60, what="an older server")

    def dump(self) -> Mapping[str, object]:
        """Every key of this deployment with its value, byte by byte; heartbeats and locks left out."""
        keys = sorted(cast("Iterator[str]", self.redis.scan_iter(match=f"{self.prefix}:*", count=1000)))
        raw = Redis.from_url(self.server.url)
        with raw:
            return {key: raw.dump(key) for key in keys if not key.startswith((self.key("worker"), self.key("lock")))}

    def depth(self, queue: str = "default") -> int:
        streams = [self.key("stream", queue, f"p{priority}") for priority in range(10)]
        return sum([self.redis.xlen(stream) for stream in streams])

    def pending(self, queue: str = "default") -> int:
        total = 0
        for priority in range(10):
            stream = self.key("stream", queue, f"p{priority}")
            if self.redis.exists(stream):
                total += self.redis.xpending(stream, "workers")["pending"]
        return total


class ApiProgram:
    """An API that runs, with a client that talks to it."""

    def __init__(self, program: Program, client: httpx.Client) -> None:
        self.program = program
        self.client = client

    def submit(self, task_type: str, payload: Mapping[str, object] | None = None, **fields: object) -> str:
        body = {"task_type": task_type, "payload": payload or {}, **fields}
        answer = self.client.post("/api/v1/tasks", json=body)
        assert 202 == answer.status_code, answer.text
        task_id: str = answer.json()["task_id"]
        return task_id


def _is_there(client: httpx.Client) -> bool:
    try:
        return client.get("/health").status_code == 200
    except httpx.TransportError:
        return False


class Diary:
    """A file that handlers write a line into whenever they start, whatever becomes of their process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def entries(self) -> Sequence["Start"]:
        return [Start(line) for line in self.path.read_text().splitlines()]

    def of(self, task_id: str) -> Sequence["Start"]:
        return [start for start in self.entries() if start.task_id == task_id]


class Start:
    """One start of a handler: which attempt of which task, in which process, and when on the system's clock."""

    def __init__(self, line: str) -> None:
        task_id, attempt, pid, at = line.split()
        self.task_id = task_id
        self.attempt = int(attempt)
        self.pid = int(pid)
        self.at = float(at)


def monotonic() -> float:
    """The clock that diaries use, the same in all processes."""
    return time.monotonic()
