"""Judged item 7: workers die and Redis dies under load; nothing is lost, nothing runs too often, nothing is left."""

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread
from typing import Any

import httpx
import msgspec
import pytest
from redis.exceptions import RedisError

from dtq.domain.status import TaskStatus
from tests.judged import census
from tests.judged.sizes import CHAOS_KILL_EVERY_S, CHAOS_S, CHAOS_TASKS, VISIBILITY_S
from tests.judged.system import Api, System, Worker
from tests.judged.systems import Record

CLIENTS = 4
WORKERS = 3
CONCURRENCY = 4
MAX_ATTEMPTS = 10
CLAIM_TERM_S = 60
REST_WITHIN_S = 4 * VISIBILITY_S + CLAIM_TERM_S + 60
RETRY_S = 0.1
TERMINAL_EVENTS = {"TASK_SUCCEEDED", "TASK_FAILED", "TASK_DEAD_LETTERED", "TASK_CANCELLED", "TASK_EXPIRED"}


def body_of(number: int) -> dict[str, Any]:
    """A mixture: all priorities; some delayed, some in threads, some retried, some hopeless."""
    task_type = {0: "brief_sync", 1: "hopeless"}.get(number % 10, "brief")
    return {
        "task_type": task_type,
        "payload": {"seconds": number % 7 / 50, "fails": 1 if number % 50 == 2 else 0},
        "priority": number % 10 if number % 3 else 9 - number % 10,
        "max_attempts": MAX_ATTEMPTS,
        "delay_seconds": 1 + number % 3 if number % 25 == 3 else 0,
        "idempotency_key": f"chaos-{number}",
    }


def submitted(http: httpx.Client, number: int) -> str:
    """Submit until there is an answer, always under the same key, and return the task's id."""
    while True:
        try:
            answer = http.post("/api/v1/tasks", json=body_of(number))
        except httpx.TransportError:
            continue
        if answer.status_code in {200, 202, 409}:
            return str(answer.json()["task_id"])
        assert 503 == answer.status_code, answer.text
        time.sleep(RETRY_S)


def feed(api: Api, client: int, *, begin: float) -> dict[str, str]:
    """Submit this client's share, spread over the time of the chaos; return the type of each accepted task."""
    accepted = {}
    with httpx.Client(base_url=api.http.base_url, timeout=20) as http:
        for number in range(client, CHAOS_TASKS, CLIENTS):
            time.sleep(max(0.0, begin + CHAOS_S * number / CHAOS_TASKS - time.monotonic()))
            accepted[submitted(http, number)] = body_of(number)["task_type"]
    return accepted


class Witness:
    """Listens to all events, and again after each lost connection, until it is told to stop."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._stop = Event()
        self.heard: list[dict[str, Any]] = []
        self._thread = Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while not self._stop.is_set():
            try:
                with self._system.redis.pubsub(ignore_subscribe_messages=True) as subscription:
                    subscription.subscribe(self._system.keys.events)
                    while not self._stop.is_set():
                        message = subscription.get_message(timeout=0.1)
                        if message is not None:
                            self.heard.append(msgspec.json.decode(message["data"]))
            except RedisError:
                time.sleep(RETRY_S)

    def stop(self) -> dict[str, list[str]]:
        """End, and return the types of each task's events, in order."""
        self._stop.set()
        self._thread.join()
        found: dict[str, list[str]] = {}
        for event in self.heard:
            if event.get("task_id"):
                found.setdefault(event["task_id"], []).append(event["type"])
        return found


def wreak_havoc(system: System, workers: list[Worker], *, begin: float) -> int:
    """Kill and replace one worker after another, and Redis once, half-way; return how many workers died."""
    kills, redis_at = 0, begin + CHAOS_S / 2
    while time.monotonic() < begin + CHAOS_S:
        kills += 1
        time.sleep(max(0.0, begin + kills * CHAOS_KILL_EVERY_S - time.monotonic()))
        workers[kills % WORKERS].kill()
        workers[kills % WORKERS] = system.worker(concurrency=CONCURRENCY, ready=False)
        if time.monotonic() >= redis_at:
            redis_at = float("inf")
            system.server.kill()
            system.server.restart()
    return kills


@pytest.mark.timeout(CHAOS_S + REST_WITHIN_S + 120)
def test_nothing_is_lost_when_workers_and_redis_are_killed(
    durable_system: System, record_testsuite_property: Record
) -> None:
    system = durable_system
    api = system.api()
    workers = [system.worker(concurrency=CONCURRENCY) for _ in range(WORKERS)]
    witness = Witness(system)

    begin = time.monotonic()
    with ThreadPoolExecutor(CLIENTS) as pool:
        feeding = [pool.submit(feed, api, client, begin=begin) for client in range(CLIENTS)]
        kills = wreak_havoc(system, workers, begin=begin)
        accepted = {task_id: kind for one in feeding for task_id, kind in one.result().items()}
    census.come_to_rest(system, accepted, within=REST_WITHIN_S)

    assert CHAOS_TASKS == len(accepted)
    found = census.see_every_task_ended_once(system, accepted)
    see_each_ended_as_it_should(found, accepted)
    census.see_attempts_bounded(system, max_attempts=MAX_ATTEMPTS)
    record_testsuite_property("worker_kills", kills)
    record_testsuite_property("duplicate_runs", census.duplicate_runs(system))
    assert census.duplicate_runs(system) <= (kills + WORKERS) * CONCURRENCY
    census.see_nothing_left(system)
    see_no_event_after_the_end(witness.stop(), accepted)


def see_each_ended_as_it_should(found: Mapping[str, str], accepted: Mapping[str, str]) -> None:
    """No task was killed often enough to be given up, so each ends as its handler has it."""
    for task_id, kind in accepted.items():
        expected = TaskStatus.DEAD_LETTERED if kind == "hopeless" else TaskStatus.SUCCEEDED
        assert expected == found[task_id], f"{kind} {task_id}"


def see_no_event_after_the_end(events: Mapping[str, list[str]], accepted: Mapping[str, str]) -> None:
    """Of each task at most one end was told, and nothing after it."""
    assert set(events) <= set(accepted)
    for task_id, types in events.items():
        assert not TERMINAL_EVENTS & set(types[:-1]), f"{task_id}: {types}"
