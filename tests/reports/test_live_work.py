"""Work of a worker that lives is its own: however long it takes, how busy the process is, how slow the line."""

import pytest

from dtq.domain.events import EventType
from dtq.domain.status import TaskStatus
from tests.judged.sizes import FULL, QUICK
from tests.judged.system import System, a_gated_task, a_task
from tests.judged.test_chaos import Witness
from tests.judged.waiting import holds_for, wait_until
from tests.reports.scene import MODULES, see_each_run_once, starts_of, submitted
from tests.servers.proxy import Proxy

VISIBILITY_S = 6.0 if FULL else 2.0
TIMING = {"DTQ_VISIBILITY_TIMEOUT_S": f"{VISIBILITY_S:g}", "DTQ_HEARTBEAT_INTERVAL_S": "1" if FULL else "0.5"}

BUSY_VISIBILITY_S = 6.0 if FULL else 3.0
BUSY = {"DTQ_VISIBILITY_TIMEOUT_S": f"{BUSY_VISIBILITY_S:g}", "DTQ_HEARTBEAT_INTERVAL_S": "1"}
BURNED_S = (3 if FULL else 2) * BUSY_VISIBILITY_S


def redeliveries(witness: Witness) -> int:
    """How many starts were told of that followed the loss of a worker."""
    started = [event for event in witness.heard if event["type"] == EventType.TASK_STARTED]
    return sum(bool((event["metadata"] or {}).get("redelivered")) for event in started)


def test_tasks_that_outlast_the_visibility_timeout_are_started_once(system: System) -> None:
    """R03."""
    witness = Witness(system)
    for _ in range(3):
        # with room for what a peer could seem to have left
        system.worker(TIMING, concurrency=12)
    tasks = system.create(*[a_gated_task("long")] * 12)
    for task_id in tasks:
        system.started(task_id)

    holds_for(lambda: True, seconds=3.5 * VISIBILITY_S, what="they run for some visibility timeouts")
    system.open_gate("long")

    see_each_run_once(system, tasks)
    witness.stop()
    assert 0 == redeliveries(witness)


@pytest.mark.timeout(BURNED_S + 120)
def test_threads_that_compute_without_a_break_starve_neither_heartbeat_nor_deadlines(system: System) -> None:
    """R04."""
    settings = MODULES | BUSY
    worker, api = system.worker(settings, concurrency=5), system.api(settings)
    burning = [submitted(api, "burn", {"seconds": BURNED_S}, timeout_ms=120_000) for _ in range(4)]
    for task_id in burning:
        system.started(task_id)
    late = submitted(api, "gated", {"gate": "late"}, timeout_ms=1000, max_attempts=1)
    system.started(late)
    system.worker(settings)

    ended = system.ended(late)
    signs = []
    while system.count_ended(burning) < len(burning):
        answer = api.http.get(f"/api/v1/workers/{worker.worker_id}")
        signs.append(answer.json()["status"])

    assert TaskStatus.DEAD_LETTERED is ended.status
    assert ended.duration is not None
    assert ended.duration.total_seconds() < BURNED_S / 2
    assert {"busy"} == set(signs)
    see_each_run_once(system, burning)


def test_a_slow_line_makes_nothing_look_abandoned(system: System) -> None:
    """R07."""
    number = 200 if FULL else 40
    with Proxy(system.server.url) as line:
        settings = TIMING | {"DTQ_REDIS_URL": line.url}
        for _ in range(2):
            system.worker(settings, concurrency=2)
        line.delay(0.1)
        tasks = system.create(*[a_task("brief", payload={"seconds": 3 if FULL else 0.3})] * number)
        see_each_run_once(system, tasks, within=number * 2)


def test_a_delay_beyond_the_visibility_timeout_ends_in_one_start(system: System) -> None:
    """S01."""
    for _ in range(3):
        system.worker(TIMING)
    (task_id,) = system.create(a_task("echo", delay_seconds=2.5 * VISIBILITY_S))

    see_each_run_once(system, [task_id])
    ended = system.task(task_id)
    assert ended.started_at is not None
    assert ended.started_at >= ended.available_at


def test_abandoned_work_of_high_priority_does_not_wait_behind_a_low_backlog(system: System) -> None:
    """S09."""
    victim = system.worker(QUICK, concurrency=1)
    (urgent,) = system.create(a_gated_task("urgent") | {"priority": 9})
    system.started(urgent)
    backlog = system.create(*[a_task("brief", payload={"seconds": 0.2}, priority=0)] * 100)

    victim.kill()
    system.worker(QUICK, concurrency=1)
    system.started(urgent, attempt=2, within=40)

    begun = sum(map(len, starts_of(system, backlog).values()))
    assert begun < len(backlog)
    system.open_gate("urgent", attempt=2)
    assert TaskStatus.SUCCEEDED is system.ended(urgent).status


def test_many_peers_that_reap_at_once_run_each_abandoned_task_once(system: System) -> None:
    """S04."""
    peers, abandoned = (10, 100) if FULL else (4, 40)
    victim = system.worker(QUICK, concurrency=abandoned)
    tasks = system.create(*[a_gated_task("abandoned")] * abandoned)
    for task_id in tasks:
        system.started(task_id)
    for _ in range(peers):
        system.worker(QUICK, concurrency=abandoned)
    system.open_gate("abandoned", attempt=2)

    victim.kill()
    wait_until(lambda: system.count_ended(tasks) == abandoned, within=60, what="all run again")

    assert {task_id: [1, 2] for task_id in tasks} == starts_of(system, tasks)
    assert {TaskStatus.SUCCEEDED} == {system.task(task_id).status for task_id in tasks}
