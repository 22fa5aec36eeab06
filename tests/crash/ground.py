"""One deployment whose actor, a worker or an API, reaches Redis by a line and as a user in a test's hands."""

import contextlib
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
from redis.exceptions import ResponseError

from dtq.adapters.redis.keys import GROUP
from dtq.application.loops.upkeep import CLAIM_TERM
from dtq.domain.admission import DEFAULT_QUEUE
from dtq.domain.task import TaskId
from tests.contract.redis_harness import rules_of
from tests.judged.program import Program, Spawn
from tests.judged.system import Api, System, Worker, a_task
from tests.judged.waiting import wait_until
from tests.servers import RedisServer
from tests.servers.proxy import Proxy

VISIBILITY_MS = 31_357
"""So long that no living worker is ever taken for a dead one, and a number that stands in no other request."""

SETTINGS = {
    "DTQ_VISIBILITY_TIMEOUT_S": str(VISIBILITY_MS / 1000),
    "DTQ_HEARTBEAT_INTERVAL_S": "0.25",
    "DTQ_RETRY_BASE_DELAY": "0.1",
    "DTQ_DRAIN_TIMEOUT_S": "0.2",
}
WITHIN_S = 20.0
SILENCE_S = 0.05
UNANSWERED = {None, httpx.codes.SERVICE_UNAVAILABLE}


@dataclass(slots=True, kw_only=True, eq=False)
class Case:
    """One task on its way: the call that a client waits for, if it is one, and what was answered so far."""

    key: str
    is_keyless: bool = False
    """Its task has no idempotency key."""
    task_id: str | None = None
    path: str = ""
    body: Mapping[str, object] = field(default_factory=dict)
    call: Future[httpx.Response | None] | None = None
    answers: list[int | None] = field(default_factory=list)

    @property
    def gate(self) -> str:
        """The gate of a gated task of this case."""
        return self.key


class Ground:
    """Starts the actor and its peers, and lets time pass; a context manager that ends all."""

    def __init__(self, server: RedisServer, *, folder: Path, spawn: Spawn) -> None:
        self.system = System(server, folder=folder, settings=SETTINGS, spawn=spawn)
        self.line = Proxy(server.url)
        self.cases: list[Case] = []
        self._user = self.system.prefix
        self._actor: Worker | Api | None = None
        self._api: Api | None = None
        self._worker: Worker | None = None
        self._threads = ThreadPoolExecutor(4)
        self._listener: Any = self.system.redis.pubsub(ignore_subscribe_messages=True)
        self._listener.subscribe(self.system.keys.events)
        self._listener.get_message(timeout=WITHIN_S)
        self.change_rules(*rules_of(self._user))

    # what the actor may do

    def change_rules(self, *rules: str) -> None:
        """Give the actor's user permissions, or take some away."""
        self.system.redis.execute_command("ACL", "SETUSER", self._user, *rules)

    def allow_all(self) -> None:
        """Give everything back."""
        self.change_rules("reset", *rules_of(self._user))

    # the processes

    @property
    def own_settings(self) -> dict[str, str]:
        """The actor's way to Redis."""
        parts = urlsplit(self.line.url)
        return {"DTQ_REDIS_URL": parts._replace(netloc=f"{self._user}:PASSWORD@{parts.netloc}").geturl()}

    @property
    def actor(self) -> Program:
        """Whoever is made to stop."""
        assert self._actor is not None
        return self._actor

    def working_actor(self, *, ready: bool = True) -> Worker:
        """Return the worker that is made to stop; started now, if it was not yet."""
        if not isinstance(self._actor, Worker):
            self._actor = self.system.worker(self.own_settings, ready=ready)
        return self._actor

    def serving_actor(self) -> Api:
        """Return the API that is made to stop; started now, if it was not yet."""
        if not isinstance(self._actor, Api):
            self._actor = self.system.api(self.own_settings)
        return self._actor

    def healthy_api(self) -> Api:
        """Return an API that nothing is done to."""
        if self._api is None:
            self._api = self.system.api()
        return self._api

    def healthy_worker(self) -> Worker:
        """Return a worker that nothing is done to."""
        if self._worker is None:
            self._worker = self.system.worker()
        return self._worker

    def dismiss_healthy_worker(self) -> None:
        """Let it end in good order."""
        worker = self.healthy_worker()
        worker.terminate()
        worker.exit_code(within=WITHIN_S)
        self._worker = None

    def kill_actor(self) -> None:
        """SIGKILL; what it had on its way goes with it."""
        self.actor.kill()
        self.line.cut()
        self.line.heal()
        self._actor = None

    def retire_actor(self) -> None:
        """Let it end in good order."""
        if self.actor.alive():
            self.actor.terminate()
            self.actor.exit_code(within=WITHIN_S)
        self._actor = None

    @property
    def has_actor(self) -> bool:
        """Whether the actor still lives, for all that was done to it here."""
        return self._actor is not None

    # clients

    def submitted(self, task_type: str, *, key: str | None = None, is_keyless: bool = False, **payload: Any) -> Case:
        """Create a task directly, under an idempotency key of its own, or none."""
        case = self.new_case(key)
        case.is_keyless = is_keyless
        options = {name: payload.pop(name) for name in ("max_attempts", "delay_seconds") if name in payload}
        key = None if is_keyless else case.key
        task = a_task(task_type, payload=payload, idempotency_key=key, timeout_ms=600_000, **options)
        (case.task_id,) = self.system.create(task)
        return case

    def new_case(self, key: str | None = None) -> Case:
        """Begin a case."""
        case = Case(key=key or uuid4().hex)
        self.cases.append(case)
        return case

    def ask(self, case: Case, *, api: Api) -> None:
        """Send the case's request, without waiting for the answer."""

        def post() -> httpx.Response | None:
            try:
                return api.http.post(case.path, json=dict(case.body), headers={"Idempotency-Key": case.key})
            except httpx.TransportError:
                return None

        case.call = self._threads.submit(post)

    def answered(self, case: Case) -> int | None:
        """Wait for the answer to what was asked last; None where there was none."""
        assert case.call is not None
        response = case.call.result(WITHIN_S)
        case.answers.append(None if response is None else response.status_code)
        if response is not None and "task_id" in response.json():
            case.task_id = response.json()["task_id"]
        return case.answers[-1]

    def ask_until_answered(self, case: Case) -> None:
        """Repeat the request as a client does who was told nothing."""
        while self.answered(case) in UNANSWERED:
            api = self.serving_actor() if self.has_actor else self.healthy_api()
            self.ask(case, api=api)

    # time

    def let_pass(self, owner: Program) -> None:
        """Let the visibility timeout of a dead worker's entries, its lead and its claims run out at once."""
        assert isinstance(owner, Worker)
        redis, keys = self.system.redis, self.system.keys
        for stream in keys.streams(DEFAULT_QUEUE):
            with contextlib.suppress(ResponseError):
                for one in redis.xpending_range(stream, GROUP, "-", "+", 100, consumername=owner.worker_id):
                    idle = ("IDLE", VISIBILITY_MS + 1000, "JUSTID")
                    redis.execute_command("XCLAIM", stream, GROUP, owner.worker_id, 0, one["message_id"], *idle)
        self.let_lead_pass()
        for task_id, at in redis.zrange(keys.claimed, 0, -1, withscores=True):
            redis.zadd(keys.claimed, {task_id: at - 1000 * CLAIM_TERM.total_seconds() - 1000})

    def let_lead_pass(self) -> None:
        """Let the lead of a dead worker run out."""
        self.system.redis.delete(self.system.keys.lock)

    # the end

    def ended(self, case: Case) -> str:
        """Wait until the task of a case has ended; return its id."""
        assert case.task_id is not None, f"never accepted: {case.answers}"
        wait_until(
            lambda: self.system.count_ended([str(case.task_id)]), within=WITHIN_S, what=f"task {case.task_id} ends"
        )
        return case.task_id

    def events(self) -> list[dict[str, Any]]:
        """Return what was published since this was asked last."""
        events = []
        while (message := self._listener.get_message(timeout=SILENCE_S)) is not None:
            events.append(json.loads(message["data"]))
        return events

    def open_gates(self, attempts: Sequence[int] = (1, 2, 3, 4)) -> None:
        """Let whatever waits at a gate pass."""
        for case in self.cases:
            for attempt in attempts:
                self.system.open_gate(case.gate, attempt=attempt)

    def started(self, case: Case, *, attempt: int = 1) -> None:
        """Wait until an attempt has begun."""
        self.system.started(TaskId(str(case.task_id)), attempt=attempt)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        redis: Any = self.system.redis
        self.line.heal()
        self._listener.close()
        for program in self.system.programs:
            program.close()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for key in redis.scan_iter(match=f"{self.system.prefix}:*", count=1000):
            redis.delete(key)
        redis.execute_command("ACL", "DELUSER", self._user)
        self.line.__exit__(kind, error, traceback)
        self.system.__exit__(kind, error, traceback)
