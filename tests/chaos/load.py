"""Clients that submit, repeat, cancel, requeue and discard over HTTP, whatever happens, and write down every answer."""

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import timedelta
from random import Random
from typing import Any, Final

import httpx

from dtq.domain.admission import DEFAULT_QUEUE
from dtq.domain.task import TaskId
from tests.chaos.plan import CLIENTS, Plan, Request
from tests.simulation.history import Deed, History, Submission

ANSWER_WITHIN_S: Final = 15.0
"""How long a client waits: an API that stands still does not answer at all."""

AGAIN_S: Final = 0.2
MOST_TRIES: Final = 400
OPERATOR_EVERY_S: Final = 1.5

CREATED: Final = 202
DUPLICATE: Final = 200
IN_PROGRESS: Final = 409
UNKNOWN: Final = "may or may not"


class Load:
    """All clients of one run."""

    def __init__(self, plan: Plan, *, urls: Sequence[str], history: History, begin: float) -> None:
        self._plan = plan
        self._urls = urls
        self._history = history
        self._begin = begin
        self._stop = threading.Event()
        self.answers: dict[str, int] = {}
        """How often each answer came."""
        self.acknowledged: dict[TaskId, Request] = {}
        self.surprises: list[str] = []
        """Answers that nobody may get."""
        self._clients = [threading.Thread(target=self._feed, args=(one,), daemon=True) for one in range(CLIENTS)]
        self._operator = threading.Thread(target=self._operate, daemon=True)

    def begin(self) -> None:
        """Let them begin."""
        for thread in (*self._clients, self._operator):
            thread.start()

    @property
    def is_over(self) -> bool:
        """Whether everything has been submitted."""
        return not any(thread.is_alive() for thread in self._clients)

    def close(self) -> None:
        """End the operator, and wait for all of them."""
        self._stop.set()
        for thread in (*self._clients, self._operator):
            thread.join(2 * ANSWER_WITHIN_S)

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return time.time() - self._begin

    def _feed(self, client: int) -> None:
        with ExitStack() as stack:
            clients = [stack.enter_context(httpx.Client(base_url=url, timeout=ANSWER_WITHIN_S)) for url in self._urls]
            self._serve(clients, client)

    def _serve(self, clients: Sequence[httpx.Client], client: int) -> None:
        for request in self._plan.requests[client::CLIENTS]:
            if self._stop.wait(max(0.0, request.at - self.now)):
                return
            task_id = self._submit(clients, client, request)
            if task_id is None:
                continue
            if request.is_repeated:
                self._post(clients[request.number % len(clients)], client, request)
            if request.cancel_after is not None:
                self._stop.wait(request.cancel_after)
                self._do(clients[request.number % len(clients)], "cancel", task_id, f"/api/v1/tasks/{task_id}/cancel")

    def _submit(self, clients: Sequence[httpx.Client], client: int, request: Request) -> TaskId | None:
        """Submit until there is an answer; without a key, nobody repeats what may have been carried out."""
        for attempt in range(MOST_TRIES):
            one = self._post(clients[(request.number + attempt) % len(clients)], client, request)
            if one.task_id is not None:
                return one.task_id
            if one.key is None and one.answer in {"", "OutcomeUnknown"}:
                return None
            self._stop.wait(AGAIN_S)
        return None

    def _post(self, http: httpx.Client, client: int, request: Request) -> Submission:
        one = Submission(
            at=self.now,
            who=f"client-{client}",
            number=request.number,
            queue=DEFAULT_QUEUE,
            key=request.body.get("idempotency_key"),
            delay=timedelta(seconds=request.body.get("delay_seconds", 0)),
        )
        self._history.submissions.append(one)
        try:
            answer = http.post("/api/v1/tasks", json=request.body)
        except httpx.TransportError as error:
            self._count(type(error).__name__)
            return one
        one.ended_at = self.now
        self._read(one, answer, request)
        return one

    def _read(self, one: Submission, answer: httpx.Response, request: Request) -> None:
        body = answer.json()
        self._count(str(answer.status_code))
        match answer.status_code:
            case 202:
                one.answer, one.task_id = "created", body["task_id"]
            case 200:
                one.answer, one.task_id = "duplicate", body["task_id"]
            case 409:
                one.answer, one.task_id = "IdempotencyInProgress", body["task_id"]
            case 429:
                one.answer = "QueueFull"
            case 503:
                one.answer = "OutcomeUnknown" if UNKNOWN in body["detail"] else "BrokerUnavailable"
            case _:
                self.surprises.append(f"{answer.status_code} {answer.text}")
        if one.task_id is not None:
            self.acknowledged.setdefault(one.task_id, request)

    def _count(self, answer: str) -> None:
        self.answers[answer] = self.answers.get(answer, 0) + 1

    def _do(self, http: httpx.Client, what: str, about: str, path: str) -> None:
        deed = Deed(at=self.now, who="operator", what=what, about=about)
        self._history.deeds.append(deed)
        try:
            answer = http.post(path)
        except httpx.TransportError as error:
            deed.answer = type(error).__name__
            return
        deed.ended_at = self.now
        deed.answer = "done" if answer.is_success else str(answer.json()["code"])
        if answer.status_code >= 500 and answer.status_code != 503:
            self.surprises.append(f"{answer.status_code} {answer.text}")

    def _operate(self) -> None:
        random = Random(f"{self._plan.seed} operator")
        with httpx.Client(base_url=self._urls[-1], timeout=ANSWER_WITHIN_S) as http:
            while not self._stop.wait(OPERATOR_EVERY_S):
                letter = self._a_letter(http, random)
                if letter is not None:
                    what = random.choice(("requeue", "requeue", "requeue", "discard"))
                    self._do(http, what, letter, f"/api/v1/dlq/{letter}/{what}")

    def _a_letter(self, http: httpx.Client, random: Random) -> str | None:
        try:
            answer = http.get("/api/v1/dlq", params={"limit": 20})
        except httpx.TransportError:
            return None
        letters: Sequence[Mapping[str, Any]] = answer.json().get("items", []) if answer.is_success else []
        return str(random.choice(letters)["task_id"]) if letters else None
