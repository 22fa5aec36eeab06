"""Judged items 3 and 4: what a killed worker was running runs again elsewhere, and what kills workers is given up."""

import time

import pytest

from dtq.domain.status import TaskStatus
from tests.judged.sizes import HEARTBEAT_S, KILLED_VISIBILITY_S, LIMIT_FACTOR, REPEATS, VISIBILITY_S
from tests.judged.system import System, Worker, a_gated_task, a_task
from tests.judged.systems import Record
from tests.judged.waiting import wait_until

MINUTES = 60


def allowed_s(system: System) -> float:
    """How late the work of a dead worker may run again: later where the server is young, since nobody reaps then."""
    uptime = int(system.redis.info("server")["uptime_in_seconds"])
    return LIMIT_FACTOR * KILLED_VISIBILITY_S + (2 * HEARTBEAT_S if uptime <= KILLED_VISIBILITY_S else 0)


@pytest.mark.timeout(20 * MINUTES)
def test_the_tasks_of_a_killed_worker_run_again_elsewhere(system: System, record_testsuite_property: Record) -> None:
    settings = {"DTQ_VISIBILITY_TIMEOUT_S": str(KILLED_VISIBILITY_S)}
    victim = system.worker(settings, concurrency=4)
    for turn in range(REPEATS):
        tasks = system.create(*[a_gated_task(f"turn{turn}")] * 4)
        for task_id in tasks:
            system.started(task_id)
        limit = allowed_s(system)
        heir = system.worker(settings, concurrency=4)

        killed_at = time.monotonic()
        victim.kill()
        for task_id in tasks:
            system.started(task_id, attempt=2, within=2 * limit)
        system.open_gate(f"turn{turn}", attempt=2)

        begun = [mark for task_id in tasks for mark in system.journal.of(task_id) if mark.attempt == 2]
        late = sorted(mark.at - killed_at for mark in begun)
        record_testsuite_property(f"late_s in turn {turn}", late[-1])
        assert late[-1] <= limit, f"turn {turn}: {late} s after the kill"
        assert {heir.worker_id} == {mark.worker_id for mark in begun}
        ended = [system.ended(task_id) for task_id in tasks]
        assert [(TaskStatus.SUCCEEDED, 2)] * 4 == [(task.status, task.attempt) for task in ended]
        assert [[1, 2]] * 4 == [system.journal.starts(task_id) for task_id in tasks]
        victim = heir


@pytest.mark.timeout(6 * MINUTES)
def test_a_task_that_kills_its_process_is_given_up_and_harms_nobody(system: System) -> None:
    workers = [system.worker(), system.worker()]
    (poison,) = system.create(a_task("poison", max_attempts=3))
    good = system.create(*[a_task("brief", payload={"seconds": 0.02})] * 50)

    def all_ended() -> bool:
        replace_the_dead(system, workers)
        return system.count_ended([poison, *good]) == 51

    wait_until(all_ended, within=3 * 2 * LIMIT_FACTOR * VISIBILITY_S + 30, what="all 51 tasks end")

    assert [1, 2, 3] == system.journal.starts(poison)
    lost = system.task(poison)
    assert (TaskStatus.DEAD_LETTERED, 3) == (lost.status, lost.attempt)
    assert lost.failure is not None
    assert "WorkerLost" == lost.failure.error_class
    assert [poison] == [fields["task_id"] for _, fields in system.redis.xrange(system.keys.dead_letters)]
    assert {TaskStatus.SUCCEEDED} == {system.task(task_id).status for task_id in good}


def replace_the_dead(system: System, workers: list[Worker]) -> None:
    """What a supervisor does."""
    for place, worker in enumerate(workers):
        if not worker.alive():
            workers[place] = system.worker(ready=False)
