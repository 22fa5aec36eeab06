"""A deployment that is to be struck: processes in slots, each with its user of Redis, and some with their own line."""

import os
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

from redis import Redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from dtq import demo
from dtq.domain.retry import RetryPolicy
from dtq.domain.task import WorkerId
from tests.chaos import handlers
from tests.chaos.aof import TO_KEEP
from tests.chaos.plan import Mode
from tests.judged.program import Program
from tests.judged.system import Api, System, Worker
from tests.judged.waiting import wait_until
from tests.servers import Kind, RedisServer
from tests.servers.kinds import MissingServerError
from tests.servers.process import free_port
from tests.servers.proxy import Proxy

VISIBILITY_S: Final = 6.0
HEARTBEAT_S: Final = 2.5
DRAIN_S: Final = 10.0
CONCURRENCY: Final = 4
RETRY: Final = RetryPolicy(base=timedelta(seconds=0.2), maximum=timedelta(seconds=2), jitter=0.2)
READY_WITHIN_S: Final = 90.0
BEGUN: Final = ("WORKER_STARTED", "api_listens")
PATIENT: Final[Any] = {"socket_timeout": 60, "retry": Retry(ConstantBackoff(0.1), 5)}
"""How those ask who are no part of what is tested."""

SETTINGS: Final = {
    "DTQ_TASK_MODULES": f"{demo.__name__},{handlers.__name__}",
    "DTQ_VISIBILITY_TIMEOUT_S": str(VISIBILITY_S),
    "DTQ_HEARTBEAT_INTERVAL_S": str(HEARTBEAT_S),
    "DTQ_DRAIN_TIMEOUT_S": str(DRAIN_S),
    "DTQ_RETRY_BASE_DELAY": str(RETRY.base.total_seconds()),
    "DTQ_RETRY_MAX_DELAY": str(RETRY.maximum.total_seconds()),
    "DTQ_LOG_JSON": "true",
}

KINDS: Final[tuple[Kind, ...]] = ("redis82", "valkey91", "path")
"""The servers to take, in this order: processes of this machine, which can be frozen, and whose file can be read."""


@dataclass(kw_only=True, eq=False)
class Slot:
    """A place for a process, which is filled again when it is gone."""

    name: str
    url: str
    line: Proxy | None
    port: int = 0
    program: Program | None = None
    fills: int = 0

    @property
    def there(self) -> Program:
        """The process that is there, or was the last one."""
        assert self.program is not None, self.name
        return self.program

    @property
    def has_begun(self) -> bool:
        """Whether the process that is there, or was, has come as far as to say so."""
        return any(word in self.there.log for word in BEGUN)

    @property
    def own_line(self) -> Proxy:
        """The line between it and Redis."""
        assert self.line is not None, self.name
        return self.line

    @property
    def who(self) -> str:
        """What the process that is there is called in the history."""
        return self.program.worker_id if isinstance(self.program, Worker) else self.name


class Deployment:
    """Redis, workers, APIs, and the lines between them; a context manager that ends them all."""

    def __init__(self, folder: Path, *, workers: int, mode: Mode, apis: int = 2) -> None:
        self.folder = folder
        self._mode = mode
        self._rest = ExitStack()
        names = [*(f"w{number}" for number in range(workers)), *(f"a{number}" for number in range(apis))]
        self._users = [word for name in names for word in ("--user", name, "on", "nopass", "~*", "&*", "+@all")]
        self.eras: list[Path] = []
        """Where each server's own file is, in order; each is the continuation of the one before, or all is new."""
        self.eras.append(self.next_era())
        self.server = self.start(self.data)
        self.system = self._rest.enter_context(System(self.server, folder=folder, settings=SETTINGS))
        # on a machine that has much else to do an answer may take its time
        self.system.redis.close()
        self.system.redis = Redis.from_url(self.server.url, decode_responses=True, **PATIENT)
        slots = [self._slot(name) for name in names]
        self.workers, self.apis = slots[:workers], slots[workers:]

    @property
    def data(self) -> Path:
        """Where the data of the present server are."""
        return self.eras[-1]

    def next_era(self) -> Path:
        """A folder for the data of another server."""
        folder = self.folder / f"redis-{len(list(self.folder.glob('redis-*')))}"
        folder.mkdir()
        return folder

    def start(self, data: Path) -> RedisServer:
        """Start a server that lives as long as the deployment."""
        server = start_server(data, arguments=[*TO_KEEP, *self._users])
        return self._rest.enter_context(server)

    def take_over(self, server: RedisServer, *, data: Path) -> None:
        """Lead everybody to another server."""
        self.server = server
        self.eras.append(data)
        self.system.redis.close()
        self.system.redis = Redis.from_url(server.url, decode_responses=True, **PATIENT)
        self.system.redis.replicaof("NO", "ONE")
        for slot in self.slots:
            slot.own_line.point_to(server.url)

    def _slot(self, name: str) -> Slot:
        parts = urlsplit(self.server.url)
        url = urlunsplit(parts._replace(netloc=f"{name}:x@{parts.netloc}"))
        if self._mode == "within" and name not in {"w0", "w1", "a0"}:
            return Slot(name=name, url=url, line=None, port=free_port())
        line = self._rest.enter_context(Proxy(url))
        return Slot(name=name, url=line.url, line=line, port=free_port())

    @property
    def slots(self) -> list[Slot]:
        """All of them."""
        return [*self.workers, *self.apis]

    @property
    def lines(self) -> list[Slot]:
        """Those that have a line of their own."""
        return [slot for slot in self.slots if slot.line is not None]

    def fill(self, slot: Slot) -> None:
        """Start a process in a slot."""
        slot.fills += 1
        folder = self.folder / slot.name / str(slot.fills)
        folder.mkdir(parents=True)
        settings = {"DTQ_REDIS_URL": slot.url}
        if slot in self.apis:
            slot.program = Api(slot.port, environment=self.system.environment(settings), folder=folder)
        else:
            worker_id = WorkerId(f"{slot.name}-{uuid4().hex[:8]}")
            slot.program = Worker(
                worker_id,
                ["worker", "run", "--concurrency", str(CONCURRENCY)],
                environment=self.system.environment(
                    {**settings, "DTQ_WORKER_ID": worker_id, "DTQ_WORKER_METRICS_PORT": str(slot.port)}
                ),
                folder=folder,
            )
        self.system.programs.append(slot.program)

    def begin(self) -> None:
        """Fill every slot, and wait until all are ready."""
        for slot in self.slots:
            self.fill(slot)
        for slot in self.slots:
            wait_until(partial(self._is_ready, slot), within=READY_WITHIN_S, what=f"{slot.name} is ready")

    def _is_ready(self, slot: Slot) -> bool:
        assert slot.there.alive(), slot.there.log
        if isinstance(slot.program, Worker):
            return self.system.status_of(slot.program) in {"ready", "busy"}
        return isinstance(slot.program, Api) and slot.program.answers("/ready")

    def logs(self) -> dict[str, str]:
        """What every process wrote, by the name of its file."""
        found = {}
        for slot in self.slots:
            for path in sorted((self.folder / slot.name).glob("*/*.log")):
                found[f"{slot.name}/{path.parent.name}/{path.name}"] = path.read_text(errors="replace")
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._rest.close()


def follow(replica: RedisServer, master: RedisServer, *, within: float) -> None:
    """Make a server the replica of another, and wait until it has heard all that its master had."""
    with Redis.from_url(replica.url, decode_responses=True, **PATIENT) as client:
        # not by an option: it would be one again after each restart
        client.replicaof("127.0.0.1", master.port)
        wait_until(
            lambda: client.info("replication").get("master_link_status") == "up", within=within, what="it follows"
        )


def start_server(data: Path, *, arguments: list[str]) -> RedisServer:
    """Start the first server that is at hand, or the one that DTQ_TEST_SERVER names."""
    wish = os.environ.get("DTQ_TEST_SERVER")
    kinds = [kind for kind in KINDS if kind == wish] or KINDS
    reasons = []
    for kind in kinds:
        try:
            return RedisServer.start(kind, data_dir=data, appendfsync="always", arguments=arguments)
        except MissingServerError as error:
            reasons.append(str(error))
    raise RuntimeError("\n  ".join(["chaos needs a server as a process of its own:", *reasons]))
