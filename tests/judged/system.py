"""A whole dtq as processes: Redis, API, workers, commands; under a key prefix of its own."""

import asyncio
import os
import subprocess
from collections.abc import Coroutine, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import uuid4

import httpx
import msgspec
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from dtq.adapters.redis import connect
from dtq.adapters.redis.keys import Keyspace
from dtq.domain.admission import AdmissionRules, BrokerLimits, admit
from dtq.domain.lifecycle import submit
from dtq.domain.status import TERMINAL
from dtq.domain.task import Task, TaskId, Version, WorkerId
from dtq.handlers.registry import Registry
from dtq.ports.answers import Admission, Applied
from dtq.ports.backend import Backend, BackendOptions
from tests.judged import handlers
from tests.judged.journal import PATH_VARIABLE, Journal
from tests.judged.program import COMMAND, Program, Spawn, spawn_anew
from tests.judged.sizes import HEARTBEAT_S, VISIBILITY_S
from tests.judged.waiting import wait_until
from tests.servers import RedisServer
from tests.servers.process import LOOPBACK, free_port

ROOT = Path(__file__).parents[2]
PLAIN: Any = {"socket_timeout": 5, "retry": Retry(NoBackoff(), 0)}
LONG_MS = 600_000
READY_WITHIN_S = 20.0
COMMAND_WITHIN_S = 30.0
CALL_WITHIN_S = 20.0

T = TypeVar("T")


def a_task(task_type: str, *, payload: Mapping[str, Any] | None = None, **fields: object) -> dict[str, object]:
    """What is submitted: the payload, and metadata where it is given, as JSON text."""
    return {"task_type": task_type, "payload": msgspec.json.encode(payload or {}).decode(), **fields}


def a_gated_task(gate: str, *, task_type: str = "gated", **payload: object) -> dict[str, object]:
    """A task that waits until the test opens its gate, however long."""
    return a_task(task_type, payload={"gate": gate, **payload}, timeout_ms=LONG_MS)


class Worker(Program):
    """A worker process; its id is known from the start."""

    def __init__(self, worker_id: WorkerId, arguments: list[str], **rest: Any) -> None:
        super().__init__(worker_id, arguments, **rest)
        self.worker_id = worker_id


class Api(Program):
    """An API process, and a client of it that waits long enough to see how late an answer is."""

    def __init__(self, port: int, **rest: Any) -> None:
        super().__init__("api", ["api", "run", "--host", LOOPBACK, "--port", str(port)], **rest)
        self.http = httpx.Client(base_url=f"http://{LOOPBACK}:{port}", timeout=20)

    def status(self, path: str) -> int | None:
        """The status that a GET is answered with; None where nobody answers."""
        try:
            return self.http.get(path).status_code
        except httpx.TransportError:
            return None

    def answers(self, path: str) -> bool:
        """Whether a GET is answered with 200."""
        return self.status(path) == httpx.codes.OK

    def close(self) -> None:
        """End it and its client."""
        self.http.close()
        super().close()


class Loop:
    """An event loop that always turns, in a thread of its own: connections notice at once when they are cut."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Run a call on the loop, and wait for what it returns."""
        return asyncio.run_coroutine_threadsafe(call, self._loop).result(CALL_WITHIN_S)

    def close(self) -> None:
        """End the loop."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class System:
    """Starts processes of one deployment, submits to it, and looks into it; a context manager that ends them all."""

    def __init__(
        self,
        server: RedisServer,
        *,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        spawn: Spawn = spawn_anew,
    ) -> None:
        self.server = server
        self._spawn = spawn
        self.folder = folder
        self.prefix = f"judged-{uuid4().hex[:8]}"
        self.keys = Keyspace(self.prefix)
        self.journal = Journal(folder / "journal")
        self.programs: list[Program] = []
        # redis-py's annotations allow for every mode of a client at once, so that no answer has a useful type
        self.redis: Any = Redis.from_url(server.url, decode_responses=True, **PLAIN)
        self.raw_redis: Any = Redis.from_url(server.url, **PLAIN)
        self._loop = Loop()
        self._settings = {
            "DTQ_REDIS_URL": server.url,
            "DTQ_KEY_PREFIX": self.prefix,
            "DTQ_TASK_MODULES": handlers.__name__,
            "DTQ_VISIBILITY_TIMEOUT_S": str(VISIBILITY_S),
            "DTQ_HEARTBEAT_INTERVAL_S": str(HEARTBEAT_S),
            "DTQ_RETRY_BASE_DELAY": "0.2",
            **(settings or {}),
        }

    @cached_property
    def backend(self) -> Backend:
        """The Redis adapter, connected from this process, for use by ``run``."""
        backend = connect(self.server.url, options=BackendOptions(key_prefix=self.prefix))
        self.run(backend.server.prepare())
        return backend

    def environment(self, settings: Mapping[str, str]) -> dict[str, str]:
        """The variables of a process: no DTQ_ setting but those of this system."""
        own = {name: text for name, text in os.environ.items() if not name.startswith("DTQ_")}
        # whoever judges another copy of dtq than the installed one has put it there
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        return {**own, "PYTHONPATH": path, PATH_VARIABLE: str(self.journal.path), **self._settings, **settings}

    def worker(self, settings: Mapping[str, str] | None = None, *, concurrency: int = 4, ready: bool = True) -> Worker:
        """Start a worker and, unless told otherwise, wait until it is ready."""
        worker_id = WorkerId(f"worker-{uuid4().hex[:8]}")
        environment = self.environment({"DTQ_WORKER_ID": worker_id, **(settings or {})})
        arguments = ["worker", "run", "--concurrency", str(concurrency)]
        worker = Worker(worker_id, arguments, environment=environment, folder=self.folder, spawn=self._spawn)
        self.programs.append(worker)
        if ready:
            wait_until(
                lambda: self.status_of(worker) in {"ready", "busy"} or not worker.alive(),
                within=READY_WITHIN_S,
                what=f"{worker_id} is ready",
            )
            assert worker.alive(), worker.log
        return worker

    def status_of(self, worker: Worker) -> str | None:
        """What a worker says of itself in Redis."""
        status: str | None = self.redis.hget(self.keys.worker(worker.worker_id), "status")
        return status

    def api(self, settings: Mapping[str, str] | None = None, *, ready: bool = True) -> Api:
        """Start an API and, unless told otherwise, wait until it is ready."""
        api = Api(free_port(), environment=self.environment(settings or {}), folder=self.folder, spawn=self._spawn)
        self.programs.append(api)
        if ready:
            wait_until(lambda: api.answers("/ready") or not api.alive(), within=READY_WITHIN_S, what="the API is ready")
            assert api.alive(), api.log
        return api

    def command(
        self, *arguments: str, text: str | None = None, settings: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run one command of dtq to its end."""
        return subprocess.run(
            [*COMMAND, *arguments],
            env=self.environment(settings or {}),
            cwd=self.folder,
            input=text,
            capture_output=True,
            text=True,
            timeout=COMMAND_WITHIN_S,
            check=False,
        )

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Run a call of ``backend`` on the one loop that its connections live on."""
        return self._loop.run(call)

    def create(self, *submissions: Mapping[str, object]) -> list[TaskId]:
        """Create tasks by one call of the broker, in this order."""
        rules = AdmissionRules(task_types=Registry.from_modules([handlers]).task_types)
        now = self.backend.clock.now()
        changes = [
            submit(admit(fields, rules=rules), task_id=TaskId(uuid4().hex), now=now, token=Version(uuid4().hex))
            for fields in submissions
        ]
        admissions = [Admission(change=change) for change in changes]
        answers = self.run(self.backend.broker.create(admissions, limits=BrokerLimits()))
        assert [Applied] * len(changes) == [type(answer) for answer in answers]
        return [change.after.task_id for change in changes]

    def task(self, task_id: str) -> Task:
        """The task as stored."""
        task = self.run(self.backend.broker.load(TaskId(task_id)))
        assert isinstance(task, Task), f"{task_id} is not stored"
        return task

    def count_ended(self, task_ids: Iterable[str]) -> int:
        """How many of these tasks have ended."""
        pipeline = self.redis.pipeline(transaction=False)
        for task_id in task_ids:
            pipeline.hget(self.keys.task(TaskId(task_id)), "status")
        return sum(status in TERMINAL for status in pipeline.execute())

    def ended(self, task_id: str, *, within: float = 20.0) -> Task:
        """Wait until a task has ended and return it."""
        wait_until(lambda: self.task(task_id).is_terminal, within=within, what=f"{task_id} ends")
        return self.task(task_id)

    def started(self, task_id: str, *, attempt: int = 1, within: float = 20.0) -> None:
        """Wait until an attempt of a task has begun."""
        wait_until(
            lambda: attempt in self.journal.starts(task_id), within=within, what=f"attempt {attempt} of {task_id}"
        )

    def open_gate(self, name: str, *, attempt: int = 1) -> None:
        """Let a gated task of this attempt pass."""
        self.journal.path.with_name(f"gate-{name}-{attempt}").touch()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for program in self.programs:
            program.close()
        if "backend" in self.__dict__:
            self.run(self.backend.server.close())
        self._loop.close()
        self.redis.close()
        self.raw_redis.close()
