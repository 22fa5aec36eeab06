"""Judged: whatever strangers send, what it leaves in Redis stays below a bound that the settings give."""

import asyncio
import string
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.judged.sizes import FULL
from tests.judged.system import Api, System
from tests.servers import RedisServer

REQUESTS = 100_000 if FULL else 1_000
AT_ONCE = 32
KEY = "s3cret-key"

QUEUES, DEPTH, SCHEDULED = 12, 25, 40
LIMITS = {
    "DTQ_TASK_MODULES": "dtq.demo",
    "DTQ_MAX_QUEUES": str(QUEUES),
    "DTQ_MAX_QUEUE_DEPTH": str(DEPTH),
    "DTQ_MAX_SCHEDULED": str(SCHEDULED),
}
FIXED_KEYS = 10
"""The keys of which there is one each: recent tasks, queues, schedule, claims, dead letters, audit and the like."""
KEYS_OF_A_QUEUE = 11
KEYS_OF_A_TASK = 2

NASTY = (
    "",
    " ",
    "\n",
    "a\r\nX-API-Key: x",
    "../../etc/passwd",
    "%00",
    "💥",
    "a" * 300,
    "*",
    "?[]",
    "dtq:*",
    "{x}",
    "\x1b[31m",
)
ACTS = ("cancel", "requeue", "discard", "pause", "resume", "purge")
FOLDERS = ("tasks", "dlq", "queue", "queues", "workers", "audit", "task-types", "events", "nowhere", "tasks/batch")

pytestmark = pytest.mark.timeout(3600)


class Stranger:
    """Makes up requests, the same ones in each run."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - nothing here is secret

    def request(self) -> dict[str, Any]:
        """One request: a submission that may be good, or anything at all."""
        if self._random.random() < 0.5:
            return self._submission()
        method = self._random.choice(["GET", "GET", "POST", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"])
        parts = [self._random.choice(FOLDERS), self._name(), self._random.choice([*ACTS, "", self._name()])]
        query = f"?{quote(self._name())}={quote(self._name())}" if self._random.random() < 0.3 else ""
        path = "/".join(quote(part, safe="/") for part in parts)
        return {"method": method, "url": f"/api/v1/{path}{query}", "headers": self._headers()}

    def _submission(self) -> dict[str, Any]:
        random = self._random
        body: dict[str, Any] = {"task_type": random.choice(["echo_task", "echo_task", self._name()]), "payload": {}}
        for member in ("queue", "idempotency_key", "delay_seconds", "priority", self._name()):
            if random.random() < 0.4:
                body[member] = random.choice([self._name(), self._slug(), random.randint(-1, 12), None, [], {}])
        items: Any = body if random.random() < 0.9 else {"tasks": [body] * random.randint(0, 3)}
        url = "/api/v1/tasks" if items is body else "/api/v1/tasks/batch"
        return {"method": "POST", "url": url, "json": items, "headers": self._headers()}

    def _headers(self) -> list[tuple[bytes, bytes]]:
        names = ("X-API-Key", "X-Request-ID", "Idempotency-Key", "Content-Type", self._slug() or "x")
        chosen = [name for name in names if self._random.random() < 0.2]
        return [(name.encode(), self._header_value()) for name in chosen]

    def _header_value(self) -> bytes:
        text = self._random.choice([self._slug(), self._slug(), *NASTY])
        return text.encode().replace(b"\n", b"").replace(b"\r", b"").replace(b"\x1b", b"").strip()

    def _name(self) -> str:
        return self._slug() if self._random.random() < 0.6 else self._random.choice(NASTY)

    def _slug(self) -> str:
        letters = self._random.choices(string.ascii_lowercase + string.digits, k=self._random.randint(1, 12))
        return "".join(letters)


@pytest.fixture
def deployment(redis_server: RedisServer, tmp_path: Path) -> Iterator[System]:
    with System(redis_server, folder=tmp_path, settings=LIMITS) as system:
        yield system
        for key in keys_of(system):
            system.redis.delete(key)


async def send_all(api: Api, *, seed: int) -> tuple[Counter[int], int]:
    """Send every request; return how often each status came, and how many tasks were accepted."""
    stranger, statuses, accepted = Stranger(seed), Counter[int](), 0
    turn = asyncio.Semaphore(AT_ONCE)

    async def send(request: dict[str, Any]) -> None:
        nonlocal accepted
        async with turn:
            try:
                answer = await client.request(**request)
            except httpx.LocalProtocolError:
                # what cannot even be written down reaches nobody
                return
        statuses[answer.status_code] += 1
        if answer.status_code == httpx.codes.ACCEPTED:
            accepted += 1
        elif request["url"].endswith("batch") and answer.status_code == httpx.codes.OK:
            accepted += answer.json()["accepted"]

    async with httpx.AsyncClient(base_url=api.http.base_url, timeout=30) as client:
        for _ in range(0, REQUESTS, 500):
            await asyncio.gather(*[send(without_streams(stranger.request())) for _ in range(500)])
    return statuses, accepted


def without_streams(request: dict[str, Any]) -> dict[str, Any]:
    """Let a stream of events end soon: one that stays open is another test's matter."""
    request["url"] = request["url"].replace("/api/v1/events", "/api/v1/event")
    return request


def keys_of(system: System) -> list[str]:
    return list(system.redis.scan_iter(match=f"{system.prefix}:*", count=1000))


def test_what_strangers_leave_behind_is_bounded(deployment: System) -> None:
    api = deployment.api({"DTQ_API_KEY": KEY})

    statuses, accepted = asyncio.run(send_all(api, seed=1))

    assert REQUESTS * 0.9 <= sum(statuses.values())
    assert not [status for status in statuses if status >= httpx.codes.INTERNAL_SERVER_ERROR], statuses
    assert {202, 400, 401, 404, 405} <= set(statuses), statuses
    # each queue is filled once and the schedule too: no worker makes room, and nobody may cancel
    assert 0 < accepted <= QUEUES * DEPTH + SCHEDULED
    assert len(keys_of(deployment)) <= FIXED_KEYS + QUEUES * KEYS_OF_A_QUEUE + KEYS_OF_A_TASK * accepted
    assert deployment.redis.hlen(deployment.keys.queues) <= QUEUES
    assert 0 == deployment.redis.xlen(deployment.keys.audit)
    assert api.alive()
    assert "request_failed" not in api.log


def test_an_open_api_lets_strangers_make_no_more_queues_or_switches_than_the_bound(deployment: System) -> None:
    api = deployment.api()

    statuses, accepted = asyncio.run(send_all(api, seed=2))

    assert not [status for status in statuses if status >= httpx.codes.INTERNAL_SERVER_ERROR], statuses
    assert 401 not in statuses
    assert len(keys_of(deployment)) <= FIXED_KEYS + QUEUES * KEYS_OF_A_QUEUE + KEYS_OF_A_TASK * accepted
    assert deployment.redis.hlen(deployment.keys.queues) <= QUEUES
    assert len([key for key in keys_of(deployment) if key.endswith(":paused")]) <= QUEUES
    assert 0 < deployment.redis.xlen(deployment.keys.audit) <= 10_200
    assert api.alive()
