"""Cancelled work never runs, whenever the cancel came, and a cancel leaves nothing behind that could hit other work."""

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from dtq.domain.events import EventType
from dtq.domain.status import TaskStatus
from dtq.domain.task import TaskId
from tests.judged import census
from tests.judged.sizes import QUICK
from tests.judged.system import Api, System
from tests.judged.test_chaos import Witness
from tests.judged.waiting import wait_until
from tests.reports.scene import MODULES, count_statuses, see_each_run_once, sized, starts_of, submission, submitted

TOLD_WITHIN_S = 5.0


def cancel(api: Api, task_id: str) -> int:
    """Ask for it; return the status of the answer."""
    return api.http.post(f"/api/v1/tasks/{task_id}/cancel").status_code


def test_what_was_cancelled_while_it_waited_never_runs(system: System) -> None:
    """R25: delayed, queued and to be retried; then past its time, and past a restart of every worker."""
    settings = QUICK | {"DTQ_RETRY_BASE_DELAY": "2"}
    api, worker = system.api(settings), system.worker(settings)
    witness = Witness(system)
    retrying = submitted(api, "brief", {"fails": 9}, max_attempts=5)
    wait_until(lambda: system.task(retrying).status is TaskStatus.RETRYING, within=20, what="a retry is due")
    assert 200 == api.http.post("/api/v1/queue/default/pause").status_code
    delayed, queued = submitted(api, "echo", delay_seconds=2), submitted(api, "echo")
    tasks = (retrying, delayed, queued)

    assert [httpx.codes.ACCEPTED] * 3 == [cancel(api, task_id) for task_id in tasks]
    assert [httpx.codes.GONE] * 3 == [cancel(api, task_id) for task_id in tasks]
    assert 200 == api.http.post("/api/v1/queue/default/resume").status_code
    worker.terminate()
    assert 0 == worker.exit_code(within=20)
    system.worker(QUICK)
    see_each_run_once(system, [submitted(api, "echo", delay_seconds=3)])

    assert {retrying: [1], delayed: [], queued: []} == starts_of(system, tasks)
    assert {TaskStatus.CANCELLED: 3} == count_statuses(system, tasks)
    told = [event["task_id"] for event in witness.heard if event["type"] == EventType.TASK_CANCELLED]
    witness.stop()
    assert sorted(tasks) == sorted(told)
    census.see_nothing_left(system)


def test_a_cancel_at_the_moment_a_task_falls_due_is_made_or_refused(system: System) -> None:
    """R25."""
    number = sized(150, 1000)
    api = system.api(QUICK)
    system.worker(QUICK)
    witness = Witness(system)
    with ThreadPoolExecutor(8) as pool:
        tasks = list(pool.map(lambda _: submitted(api, "brief", {"seconds": 0.01}, delay_seconds=1), range(number)))
        wait_until(lambda: system.count_ended(tasks) > 0, within=20, what="they fall due")
        answers = dict(zip(tasks, pool.map(lambda one: cancel(api, one), tasks), strict=True))
    wait_until(lambda: system.count_ended(tasks) == number, within=60, what="all end")
    see_each_run_once(system, [submitted(api, "echo", delay_seconds=1)])

    starts = starts_of(system, tasks)
    for task_id, answer in answers.items():
        match answer:
            case httpx.codes.ACCEPTED:
                assert (TaskStatus.CANCELLED, []) == (system.task(task_id).status, starts[task_id])
            case httpx.codes.GONE:
                assert (TaskStatus.SUCCEEDED, [1]) == (system.task(task_id).status, starts[task_id])
            case _:
                assert httpx.codes.CONFLICT == answer
                assert TaskStatus.CANCELLED is system.task(task_id).status
    cancelled = [event["task_id"] for event in witness.heard if event["type"] == EventType.TASK_CANCELLED]
    witness.stop()
    assert len(set(cancelled)) == len(cancelled)
    assert 0 < list(answers.values()).count(httpx.codes.ACCEPTED)
    census.see_nothing_left(system)


ENDS = {
    "fails": ("relapse", {}),
    "returns": ("stubborn", {}),
    "is stopped": ("gated", {"gate": "never"}),
    "times out": ("gated_sync", {"gate": "never"}),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_running_task_ends_cancelled_however_its_handler_ends(system: System, end: str) -> None:
    """R26, and python-arq/arq 290: the worker has one slot, and that is taken by what is to be cancelled."""
    task_type, payload = ENDS[end]
    api, worker = system.api(MODULES), system.worker(MODULES, concurrency=1)
    fields = {"idempotency_key": "cancelled", "max_attempts": 5, "timeout_ms": 4000}
    task_id = submitted(api, task_type, payload, **fields)
    system.started(task_id)

    assert httpx.codes.CONFLICT == cancel(api, task_id)
    ended = system.ended(task_id, within=10)
    system.open_gate("never")
    again = api.http.post("/api/v1/tasks", json=submission(task_type, payload, **fields))
    see_each_run_once(system, [submitted(api, "echo", delay_seconds=1)])

    assert (TaskStatus.CANCELLED, [1]) == (ended.status, system.journal.starts(task_id))
    assert (httpx.codes.OK, task_id, True) == (again.status_code, again.json()["task_id"], again.json()["duplicate"])
    assert worker.alive()
    census.see_nothing_left(system)


def test_a_cancelled_task_whose_worker_dies_ends_cancelled_without_another_start(system: System) -> None:
    """R26."""
    api, worker = system.api(QUICK), system.worker(QUICK)
    task_id = submitted(api, "gated_sync", {"gate": "never"}, timeout_ms=600_000)
    system.started(task_id)
    assert httpx.codes.CONFLICT == cancel(api, task_id)

    worker.kill()
    system.worker(QUICK)

    assert TaskStatus.CANCELLED is system.ended(task_id, within=30).status
    assert [1] == system.journal.starts(task_id)
    census.see_nothing_left(system)


@pytest.mark.timeout(300)
def test_marks_of_cancelled_tasks_do_not_stay(system: System) -> None:
    """R27."""
    number = sized(200, 5000)
    api = system.api(QUICK)
    with ThreadPoolExecutor(8) as pool:
        queued = list(pool.map(lambda _: submitted(api, "echo"), range(number)))
        delayed = list(pool.map(lambda _: submitted(api, "echo", delay_seconds=3600), range(number)))
        answers = set(pool.map(lambda one: cancel(api, one), [*queued, *delayed]))
    assert {httpx.codes.ACCEPTED} == answers
    assert system.redis.scard(system.keys.cancelled) <= number

    system.worker(QUICK)
    see_each_run_once(system, [submitted(api, "echo")])
    wait_until(lambda: system.redis.scard(system.keys.cancelled) == 0, within=90, what="no mark is left")

    assert {TaskStatus.CANCELLED: 2 * number} == count_statuses(system, [*queued, *delayed])
    census.see_nothing_left(system)


def test_a_cancel_that_was_refused_hits_no_later_life_of_the_task(system: System) -> None:
    """R27, and python-arq/arq 485: nothing is remembered of a cancel that came too late, or for nobody."""
    api, worker = system.api(MODULES), system.worker(MODULES)
    dead = submitted(api, "mended", {"gate": "later"}, max_attempts=1)
    assert TaskStatus.DEAD_LETTERED is system.ended(dead).status
    unknown = "0" * 32
    keys = set(system.redis.scan_iter(f"{system.prefix}:*", count=1000))

    assert [httpx.codes.GONE, httpx.codes.NOT_FOUND] == [cancel(api, dead), cancel(api, unknown)]
    grown = set(system.redis.scan_iter(f"{system.prefix}:*", count=1000)) - keys
    assert grown <= {system.keys.audit, system.keys.worker(worker.worker_id), system.keys.lock}
    assert not system.redis.exists(system.keys.cancelled)
    for name in ("later-mended", "later-open"):
        system.journal.path.with_name(f"gate-{name}").touch()
    assert httpx.codes.ACCEPTED == api.http.post(f"/api/v1/dlq/{dead}/requeue").status_code

    assert TaskStatus.SUCCEEDED is system.ended(dead).status
    assert not system.redis.exists(system.keys.task(TaskId(unknown)))
