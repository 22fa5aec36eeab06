"""More reports that nobody had named to this project before: pauses, fair shares, time zones, and records that go."""

import httpx
import pytest

from dtq.domain.status import TaskStatus
from tests.judged import census
from tests.judged.sizes import QUICK
from tests.judged.system import System, a_gated_task, a_task
from tests.judged.waiting import holds_for, wait_until
from tests.reports.scene import MODULES, WITHIN_S, see_each_run_once, sized, starts_of, submitted

DELAY_S = 1.5


def test_what_is_requeued_during_a_pause_runs_once_it_is_over(system: System) -> None:
    """OptimalBits/bull 2540 and 1813: what was retried while its queue was paused never ran after the resume."""
    api = system.api(MODULES)
    system.worker(MODULES)
    dead = [submitted(api, "mended", {"gate": "pause"}, max_attempts=1) for _ in range(5)]
    for task_id in dead:
        assert TaskStatus.DEAD_LETTERED is system.ended(task_id).status
    assert httpx.codes.OK == api.http.post("/api/v1/queue/default/pause").status_code
    waiting = [submitted(api, "echo") for _ in range(10)]
    for task_id in dead:
        assert httpx.codes.ACCEPTED == api.http.post(f"/api/v1/dlq/{task_id}/requeue").status_code
    for name in ("pause-mended", "pause-open"):
        system.journal.path.with_name(f"gate-{name}").touch()
    held = {task_id: [1] for task_id in dead} | {task_id: [] for task_id in waiting}
    holds_for(lambda: held == starts_of(system, held), seconds=1, what="nothing starts")

    assert httpx.codes.OK == api.http.post("/api/v1/queue/default/resume").status_code

    see_each_run_once(system, waiting)
    for task_id in dead:
        assert TaskStatus.SUCCEEDED is system.ended(task_id).status
    assert {task_id: [1, 1] for task_id in dead} == starts_of(system, dead)


def test_a_busy_worker_keeps_nothing_that_an_idle_one_could_run(system: System) -> None:
    """celery/celery 1933, 4494 and 3434: short jobs waited in the memory of a worker that was busy with a long one."""
    system.worker(QUICK, concurrency=1)
    (long,) = system.create(a_gated_task("long"))
    system.started(long)
    idle = system.worker(QUICK, concurrency=1)

    brief = system.create(*[a_task("brief", payload={"seconds": 0.02})] * sized(20, 200))
    see_each_run_once(system, brief)

    assert {idle.worker_id} == {mark.worker_id for task_id in brief for mark in system.journal.of(task_id)}
    system.open_gate("long")
    see_each_run_once(system, [long])


def test_hundreds_of_abandoned_tasks_come_back_at_once(system: System) -> None:
    """celery/kombu 164: ten abandoned messages were restored a turn, so that more of them were never done with."""
    number = sized(100, 1000)
    victim = system.worker(QUICK, concurrency=number)
    tasks = system.create(*[a_gated_task("many")] * number)
    for task_id in tasks:
        system.started(task_id, within=WITHIN_S)

    victim.kill()
    system.open_gate("many", attempt=2)
    system.worker(QUICK, concurrency=20)

    wait_until(lambda: system.count_ended(tasks) == number, within=WITHIN_S, what="all end")
    assert {task_id: [1, 2] for task_id in tasks} == starts_of(system, tasks)
    census.see_nothing_left(system)


@pytest.mark.parametrize("zones", [("Asia/Kathmandu", "America/Phoenix"), ("Pacific/Apia", "Europe/London")])
def test_time_zones_of_hosts_move_nothing(system: System, zones: tuple[str, str]) -> None:
    """celery/celery 2306, 4145 and 1061: where zones differed, delayed jobs and retries came at once, or never."""
    of_api, of_worker = zones
    api = system.api(QUICK | {"TZ": of_api})
    system.worker(QUICK | {"TZ": of_worker})
    delayed = [submitted(api, "echo", delay_seconds=DELAY_S) for _ in range(5)]
    retried = submitted(api, "brief", {"fails": 1})

    see_each_run_once(system, delayed)

    for task_id in delayed:
        task = system.task(task_id)
        assert task.started_at is not None
        assert task.available_at <= task.started_at
        assert DELAY_S == (task.available_at - task.created_at).total_seconds()
    assert (TaskStatus.SUCCEEDED, 2) == (system.ended(retried).status, system.task(retried).attempt)


def test_a_record_that_goes_while_its_task_runs_leaves_no_half_one(system: System) -> None:
    """Automattic/kue 559: what was written of a job whose record was gone stayed, for ever and without its job."""
    system.worker(QUICK)
    (task_id,) = system.create(a_gated_task("gone"))
    system.started(task_id)

    system.redis.delete(system.keys.task(task_id))
    for attempt in (1, 2):
        system.open_gate("gone", attempt=attempt)

    # its entry has all that another run needs
    wait_until(
        lambda: system.redis.hget(system.keys.task(task_id), "status") == TaskStatus.SUCCEEDED,
        within=WITHIN_S,
        what="it runs again, and ends",
    )
    assert {"task_id", "queue", "payload", "status"} <= set(system.redis.hkeys(system.keys.task(task_id)))
    census.see_nothing_left(system)
