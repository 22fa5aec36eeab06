"""Judged item 10: while Redis is away the API says so in time, no worker ends, and all go on by themselves after."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dtq.domain.status import TaskStatus
from tests.judged.sizes import OUTAGE_S
from tests.judged.system import Api, System, a_gated_task, a_task
from tests.judged.systems import Record
from tests.judged.waiting import holds_for, wait_until
from tests.servers import RedisServer

ANSWER_WITHIN_S = 5
BACK_WITHIN_S = 15
TASK_ID = "0" * 32

HARMS: Mapping[str, tuple[Callable[[RedisServer], None], Callable[[RedisServer], None]]] = {
    "silent": (RedisServer.pause, RedisServer.resume),
    "killed": (RedisServer.kill, RedisServer.restart),
}
REQUESTS: Mapping[str, tuple[str, str, Any]] = {
    "submit": ("POST", "/api/v1/tasks", {"task_type": "echo", "payload": {}}),
    "show": ("GET", f"/api/v1/tasks/{TASK_ID}", None),
    "list": ("GET", "/api/v1/tasks", None),
    "cancel": ("POST", f"/api/v1/tasks/{TASK_ID}/cancel", None),
    "ready": ("GET", "/ready", None),
}


def refusals(api: Api, name: str, *, until: float) -> list[tuple[int, float]]:
    """Ask again and again until then; return the status and the time of each answer."""
    method, path, body = REQUESTS[name]
    answers = []
    while time.monotonic() < until:
        asked_at = time.monotonic()
        status = api.http.request(method, path, json=body).status_code
        answers.append((status, time.monotonic() - asked_at))
    return answers


@pytest.mark.timeout(OUTAGE_S + 120)
@pytest.mark.parametrize("harm", HARMS)
def test_an_outage_is_answered_with_503_and_ends_no_process(
    own_system: System, harm: str, record_testsuite_property: Record
) -> None:
    system = own_system
    begin, heal = HARMS[harm]
    api, workers = system.api(), [system.worker(), system.worker()]
    ends_inside, lasts_through = system.create(a_gated_task("inside"), a_gated_task("through"))
    for task_id in (ends_inside, lasts_through):
        system.started(task_id)

    begin(system.server)
    until = time.monotonic() + OUTAGE_S
    system.open_gate("inside")
    with ThreadPoolExecutor() as pool:
        asked = {name: pool.submit(refusals, api, name, until=until) for name in REQUESTS}
        answers = {name: future.result() for name, future in asked.items()}
        health = api.http.get("/health").status_code
    heal(system.server)

    assert {name: {503} for name in REQUESTS} == {
        name: {status for status, _ in found} for name, found in answers.items()
    }
    slowest = {name: max(seconds for _, seconds in found) for name, found in answers.items()}
    record_testsuite_property(f"slowest_s while {harm}", slowest)
    assert max(slowest.values()) < ANSWER_WITHIN_S, slowest
    assert 200 == health
    wait_until(lambda: api.answers("/ready"), within=BACK_WITHIN_S, what="the API is ready again")
    see_work_go_on(system, api)
    system.open_gate("through")
    for task_id in (ends_inside, lasts_through):
        ended = system.ended(task_id, within=BACK_WITHIN_S)
        assert (TaskStatus.SUCCEEDED, 1, [1]) == (ended.status, ended.attempt, system.journal.starts(task_id))
    assert all(worker.alive() for worker in workers)


def test_right_after_an_outage_nobody_takes_what_a_slower_peer_still_runs(own_system: System) -> None:
    system, visibility_s = own_system, 2.0
    timing = {"DTQ_VISIBILITY_TIMEOUT_S": str(visibility_s), "DTQ_HEARTBEAT_INTERVAL_S": "1"}
    slow = system.worker(timing, concurrency=1)
    (held,) = system.create(a_gated_task("held"))
    system.started(held)
    quick = system.worker(timing, concurrency=2)

    system.server.kill()
    # idle times go on counting: when Redis is back, the task looks abandoned
    holds_for(lambda: slow.alive() and quick.alive(), seconds=1.2 * visibility_s, what="both workers live")
    slow.freeze()
    system.server.restart()
    (fresh,) = system.create(a_task("echo"))
    system.started(fresh, within=BACK_WITHIN_S)
    slow.thaw()
    holds_for(
        lambda: [1] == system.journal.starts(held), seconds=1.2 * visibility_s, what="the task is run by nobody else"
    )
    system.open_gate("held")

    ended = system.ended(held)
    assert (TaskStatus.SUCCEEDED, 1, slow.worker_id) == (ended.status, ended.attempt, ended.worker_id)


def test_what_starts_during_an_outage_waits_for_its_end(own_system: System) -> None:
    system = own_system
    system.server.stop()

    worker, api = system.worker(ready=False), system.api(ready=False)
    wait_until(lambda: "start_delayed" in worker.log, within=15, what="the worker has tried to start")
    wait_until(lambda: api.status("/health") == 200, within=15, what="the API answers")
    assert 503 == api.status("/ready")
    system.server.restart()

    wait_until(lambda: api.answers("/ready"), within=BACK_WITHIN_S, what="the API is ready")
    see_work_go_on(system, api)
    assert worker.alive()


def see_work_go_on(system: System, api: Api) -> None:
    """New work, due work, retried work: every loop of the workers has come back."""
    plain = api.http.post("/api/v1/tasks", json={"task_type": "echo", "payload": {}}).json()["task_id"]
    delayed, retried = system.create(a_task("echo", delay_seconds=0.2), a_task("brief", payload={"fails": 1}))
    for task_id in (plain, delayed, retried):
        assert TaskStatus.SUCCEEDED is system.ended(task_id, within=BACK_WITHIN_S).status
