"""Delayed work and retries: they come once, in time, whatever happens to the timer, and never without a bound."""

import time
from pathlib import Path

import httpx
import pytest

from dtq.domain.admission import DEFAULT_QUEUE
from dtq.domain.status import TaskStatus
from dtq.domain.task import WorkerId
from tests.judged import census
from tests.judged.sizes import FULL, QUICK
from tests.judged.system import Api, System, Worker, a_gated_task, a_task
from tests.judged.waiting import holds_for, wait_until
from tests.reports import skewed
from tests.reports.scene import WITHIN_S, count_statuses, see_each_run_once, sized, starts_of, submission, submitted
from tests.scraped import Scraped

LOCK_S = 10
DEPTH = 100
SPARE_KIB = 50_000
BUSY_S = 6 if FULL else 2
PAUSED_MS = 15_000 if FULL else 2_000
HEALED_WITHIN_S = 20.0


@pytest.mark.timeout(300)
def test_a_leader_that_was_stopped_while_it_promoted_does_nothing_twice(fresh_system: System) -> None:
    """R20."""
    system = fresh_system
    number = sized(300, 2000)
    leader = system.worker(QUICK, concurrency=10)
    reign = wait_until(lambda: system.redis.get(system.keys.lock), within=30, what="it leads")
    other = system.worker(QUICK, concurrency=10)
    tasks = system.create(*[a_task("echo", delay_seconds=1, max_attempts=10)] * number)
    if FULL:
        # what it holds on loan then comes back after a minute
        wait_until(lambda: system.count_ended(tasks) > 0, within=30, what="the first of them have run")

    leader.freeze()
    wait_until(
        lambda: system.redis.get(system.keys.lock) not in {None, reign}, within=3 * LOCK_S, what="another one leads"
    )
    leader.thaw()
    wait_until(lambda: system.count_ended(tasks) == number, within=100, what="all end")

    assert {TaskStatus.SUCCEEDED: number} == count_statuses(system, tasks)
    again = {task_id: found for task_id, found in starts_of(system, tasks).items() if found != [1]}
    assert len(again) <= 10, again
    wait_until(lambda: system.redis.zcard(system.keys.claimed) == 0, within=90, what="nothing is on loan")
    assert leader.alive()
    assert other.alive()


def pause(system: System) -> None:
    """Have the server answer nobody for a while."""
    system.redis.execute_command("CLIENT", "PAUSE", str(PAUSED_MS), "ALL")


def run_a_script(system: System) -> None:
    """Keep the server busy with a script of somebody else's, so that it answers BUSY."""
    system.redis.config_set("busy-reply-threshold", 200)
    script = "local t = redis.call('TIME') local till = t[1] * 1000 + t[2] / 1000 + ARGV[1] "
    script += "repeat t = redis.call('TIME') until t[1] * 1000 + t[2] / 1000 > till"
    patient = system.redis.__class__.from_url(system.server.url, socket_timeout=BUSY_S + 30)
    patient.eval(script, 0, BUSY_S * 1000)
    patient.close()


def spoil_the_claims(system: System) -> None:
    """Put a key of another type where due work is taken on loan, for a second."""
    kept = f"{system.keys.claimed}:kept"
    system.redis.set(f"{system.keys.claimed}:spoiler", "x", px=60_000)
    if system.redis.exists(system.keys.claimed):
        system.redis.rename(system.keys.claimed, kept)
    system.redis.rename(f"{system.keys.claimed}:spoiler", system.keys.claimed)
    holds_for(lambda: True, seconds=1, what="it stays so for a second")
    system.redis.delete(system.keys.claimed)
    if system.redis.exists(kept):
        system.redis.rename(kept, system.keys.claimed)


HARMS = {"paused": pause, "busy": run_a_script, "wrong type": spoil_the_claims}


@pytest.mark.parametrize("harm", HARMS)
def test_no_error_ends_the_timer(own_system: System, harm: str) -> None:
    """R21."""
    system = own_system
    api, worker = system.api(QUICK), system.worker(QUICK)
    during = [submitted(api, "echo", delay_seconds=1), submitted(api, "brief", {"fails": 1})]

    HARMS[harm](system)
    # readiness may have been found out before the harm was done
    body = submission("echo")
    wait_until(
        lambda: api.http.post("/api/v1/tasks", json=body).status_code == httpx.codes.ACCEPTED,
        within=WITHIN_S,
        what="work is accepted",
    )
    after = [submitted(api, "echo", delay_seconds=1), submitted(api, "brief", {"fails": 1})]

    for task_id in (*during, *after):
        assert TaskStatus.SUCCEEDED is system.ended(task_id, within=HEALED_WITHIN_S).status
    assert [1] == system.journal.starts(after[0])
    assert worker.alive()


def memory_of(worker: Worker) -> int:
    """The resident memory of a process, in KiB."""
    status = Path(f"/proc/{worker.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


def depth_of(api: Api) -> float:
    """How many tasks wait or run, as a scrape tells it."""
    return Scraped(api.http.get("/metrics").text).value("dtq_queue_depth", queue=DEFAULT_QUEUE) or 0


def many_submitted(api: Api, number: int, *, delay_seconds: int) -> list[str]:
    """Submit so many tasks that are delayed by so much, in batches."""
    found: list[str] = []
    for at in range(0, number, 500):
        body = submission("brief", {"seconds": 0.1}, delay_seconds=delay_seconds, priority=0)
        answer = api.http.post("/api/v1/tasks/batch", json={"tasks": [body] * min(500, number - at)})
        found += [item["task_id"] for item in answer.json()["results"]]
    return found


@pytest.mark.timeout(600)
def test_a_storm_of_due_work_is_taken_in_batches_and_starves_nobody(system: System) -> None:
    """R24."""
    storm, far = sized(1000, 20_000), sized(2000, 100_000)
    settings = QUICK | {"DTQ_MAX_QUEUE_DEPTH": str(DEPTH), "DTQ_MAX_SCHEDULED": str(storm + far)}
    api = system.api(settings)
    worker = system.worker(settings, concurrency=20)
    see_each_run_once(system, [submitted(api, "echo")])
    before = memory_of(worker)
    due_at = time.monotonic() + (60 if FULL else 6)

    waiting = many_submitted(api, far, delay_seconds=3600)
    due = many_submitted(api, storm, delay_seconds=max(1, int(due_at - time.monotonic())))
    full = api.http.post("/api/v1/tasks", json=submission("echo", delay_seconds=60))
    assert httpx.codes.TOO_MANY_REQUESTS == full.status_code
    assert "schedule_full" in full.text
    depths, urgent = [], []
    while system.count_ended(due) < storm:
        depths.append(depth_of(api))
        answer = api.http.post("/api/v1/tasks", json=submission("echo", priority=9))
        if answer.status_code == httpx.codes.ACCEPTED:
            urgent.append(answer.json()["task_id"])

    see_each_run_once(system, due)
    see_each_run_once(system, urgent)
    assert {TaskStatus.PENDING: far} == count_statuses(system, waiting)
    assert memory_of(worker) - before < SPARE_KIB
    # what falls due may exceed the limit, and is seen to
    assert max(depths) > DEPTH
    for task_id in urgent:
        task = system.task(task_id)
        assert task.started_at is not None
        assert (task.started_at - task.created_at).total_seconds() < 5


@pytest.mark.parametrize("ahead_s", [90, -90])
def test_clocks_of_hosts_that_are_wrong_move_nothing(system: System, ahead_s: int) -> None:
    """S10: API and worker differ from the server, and from each other, by a minute and a half and more."""
    modules = f"tests.judged.handlers,{skewed.__name__}"
    wrong = QUICK | {"DTQ_TASK_MODULES": modules, skewed.AHEAD_VARIABLE: str(ahead_s)}
    other = QUICK | {"DTQ_TASK_MODULES": modules, skewed.AHEAD_VARIABLE: str(-ahead_s)}
    api, worker = system.api(wrong), system.worker(other)
    (witness_of_time,) = system.create(a_gated_task("long"))
    system.started(witness_of_time)
    peer = system.worker(wrong)

    before = system.redis.time()[0]
    delayed = submitted(api, "echo", delay_seconds=3)
    see_each_run_once(system, [delayed])
    took = system.redis.time()[0] - before
    task = system.task(delayed)

    assert task.started_at is not None
    assert task.started_at >= task.available_at
    assert 2 <= took < 20
    assert abs(task.created_at.timestamp() - before) < 10
    assert {"busy", "ready"} >= {one["status"] for one in api.http.get("/api/v1/workers").json()["workers"]}
    assert {worker.worker_id, peer.worker_id} == {WorkerId(one) for one in system.redis.smembers(system.keys.workers)}
    system.open_gate("long")
    see_each_run_once(system, [witness_of_time])
    census.see_nothing_left(system)


def test_retried_and_delayed_work_keeps_its_priority(system: System) -> None:
    """OptimalBits/bull 1205, 1505 and 1755."""
    worker = system.worker(QUICK, concurrency=1)
    retried, delayed = system.create(
        a_task("brief", payload={"fails": 1}, priority=9), a_task("echo", priority=8, delay_seconds=1)
    )
    system.started(retried)
    backlog = system.create(*[a_task("brief", payload={"seconds": 0.2}, priority=0)] * 60)

    for task_id in (retried, delayed):
        assert TaskStatus.SUCCEEDED is system.ended(task_id).status
    assert system.count_ended(backlog) < len(backlog) / 2
    assert worker.alive()
    assert 0 < system.redis.xlen(system.keys.stream(DEFAULT_QUEUE, 0))
