"""A deployment under attack: an API and a worker as processes on a real server, and what a stranger can send them."""

import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from dtq.adapters.system import UuidIds
from dtq.domain.admission import DEFAULT_QUEUE
from dtq.domain.status import TERMINAL
from dtq.domain.task import Task, TaskId
from tests.judged.footprint import SIGNS_OF_LIFE
from tests.judged.sizes import QUICK
from tests.judged.system import Api, System, Worker
from tests.judged.waiting import wait_until
from tests.security import handlers
from tests.servers import RedisServer
from tests.servers.process import LOOPBACK

KEY = "s3cret-key"
WITH_KEY = {"X-API-Key": KEY}
JSON = {"Content-Type": "application/json"}
WITHIN_S = 15.0
ENTRY = {
    "queue": "default",
    "task_type": "echo",
    "payload": "{}",
    "attempt": "1",
    "max_attempts": "1",
    "priority": "5",
    "timeout_ms": "5000",
    "idempotency_key": "",
}
"""A good entry of a task stream but for its task_id."""

ACTS = (
    "/api/v1/tasks/{}/cancel",
    "/api/v1/queue/default/pause",
    "/api/v1/queue/default/resume",
    "/api/v1/queue/default/purge",
    "/api/v1/dlq/{}/requeue",
    "/api/v1/dlq/{}/discard",
    "/api/v1/dlq/purge",
    "/api/v1/doctor/repair",
)
"""Every destructive act; the braces stand for a task's id."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """A deployment that stands for the whole run."""

    system: System
    api: Api
    worker: Worker

    @property
    def address(self) -> str:
        """Host and port, as a browser would name them in Host and Origin."""
        return f"{LOOPBACK}:{self.api.http.base_url.port}"

    def post(self, body: str | bytes, *, headers: Mapping[str, str] | Sequence[tuple[str, str]] = ()) -> httpx.Response:
        """Submit a body as it is."""
        given = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
        return self.api.http.post("/api/v1/tasks", content=body, headers=[*JSON.items(), *given])

    def submitted(self, task_type: str, payload: str = "{}", **members: object) -> str:
        """Submit a task with this text as its payload; return its id."""
        rest = "".join(f', "{name}": {json.dumps(value)}' for name, value in members.items())
        answer = self.post(f'{{"task_type": "{task_type}", "payload": {payload}{rest}}}')
        assert httpx.codes.ACCEPTED == answer.status_code, answer.text
        task_id: str = answer.json()["task_id"]
        return task_id

    def shown(self, task_id: str) -> dict[str, Any]:
        """Return a task as the API shows it, once it has ended."""
        self.ended(task_id)
        found: dict[str, Any] = self.api.http.get(f"/api/v1/tasks/{task_id}").json()
        return found

    def ended(self, task_id: str) -> Task:
        """Return a task as it is stored, once it has ended; an entry that was slipped in has no record before."""
        key = self.system.keys.task(TaskId(task_id))
        redis = self.system.redis
        wait_until(lambda: redis.hget(key, "status") in TERMINAL, within=WITHIN_S, what=f"{task_id} ends")
        return self.system.task(task_id)

    def run(self, task_type: str, payload: str = "{}", **members: object) -> dict[str, Any]:
        """Submit a task and return how it ended."""
        return self.shown(self.submitted(task_type, payload, **members))

    def slip_in(self, fields: Mapping[str, object]) -> str:
        """Put an entry straight into the stream of the default queue; return the id that it names."""
        task_id = UuidIds().task()
        stream = self.system.keys.stream(DEFAULT_QUEUE, 5)
        self.system.raw_redis.xadd(stream, {"task_id": task_id, **fields})
        return task_id

    def spoil(self, task_id: str, **fields: str | bytes) -> None:
        """Overwrite fields of a task's record."""
        self.system.raw_redis.hset(self.system.keys.task(TaskId(task_id)), mapping=fields)

    def letters(self) -> list[dict[bytes, bytes]]:
        """Return the dead letters as they stand in Redis, the oldest first."""
        return [fields for _, fields in self.system.raw_redis.xrange(self.system.keys.dead_letters)]

    def lasting_keys(self) -> set[str]:
        """Return every key on the server but the signs of life of this deployment, which come and go by themselves."""
        signs = tuple(f"{self.system.prefix}:{sign}" for sign in SIGNS_OF_LIFE)
        keys = self.system.redis.scan_iter(match="*", count=1000)
        return {key for key in keys if not key.startswith(signs)}

    def see_work_goes_on(self) -> None:
        """See that both processes live, and that a task runs."""
        assert "succeeded" == self.run("echo")["status"]
        assert self.worker.alive()
        assert self.api.alive()

    def see_entries_gone(self) -> None:
        """Wait until no stream of the default queue has an entry."""
        streams = self.system.keys.streams(DEFAULT_QUEUE)
        redis = self.system.redis
        wait_until(lambda: not any(map(redis.xlen, streams)), within=WITHIN_S, what="the streams are empty")


@contextmanager
def standing(server: RedisServer, *, folder: Path, settings: Mapping[str, str]) -> Iterator[Site]:
    """Let a deployment stand, and leave nothing of it."""
    known = {**QUICK, "DTQ_TASK_MODULES": handlers.__name__, "DTQ_LOG_LEVEL": "DEBUG", **settings}
    with System(server, folder=folder, settings=known) as system:
        yield Site(system=system, api=system.api(), worker=system.worker())
        for key in system.redis.scan_iter(match=f"{system.prefix}:*", count=1000):
            system.redis.delete(key)


def say(api: Api, words: bytes, *, until: bytes = b"") -> bytes:
    """Send bytes to an API on a connection of its own; return what comes back until it hangs up, or says *until*."""
    with socket.create_connection((LOOPBACK, api.http.base_url.port or 0), timeout=WITHIN_S) as line:
        line.sendall(words)
        heard = b""
        while part := line.recv(65_536):
            heard += part
            if until and until in heard:
                break
        return heard
