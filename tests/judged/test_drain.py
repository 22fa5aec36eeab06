"""A worker that is asked to stop: it finishes what runs, hands back what it cannot finish, and says which it was."""

import time

from dtq.application.settings import ExitCode
from dtq.domain.status import TaskStatus
from tests.judged.sizes import QUICK
from tests.judged.system import System, Worker, a_gated_task, a_task
from tests.judged.waiting import wait_until

PATIENT = {"DTQ_VISIBILITY_TIMEOUT_S": "30", "DTQ_HEARTBEAT_INTERVAL_S": "1"}
"""So long a visibility timeout that nothing moves by it: what moves was handed back."""


def drain(system: System, worker: Worker) -> None:
    """Ask for it, and wait until the worker says that it does."""
    worker.terminate()
    wait_until(lambda: system.status_of(worker) == "draining", within=10, what="the worker drains")


def test_an_idle_worker_ends_at_once_and_leaves_no_trace(system: System) -> None:
    worker = system.worker(QUICK)

    worker.terminate()

    assert ExitCode.DRAINED == worker.exit_code(within=5)
    assert system.status_of(worker) is None
    assert not system.redis.sismember(system.keys.workers, worker.worker_id)


def test_running_tasks_are_finished_and_no_other_is_begun(system: System) -> None:
    worker = system.worker(PATIENT, concurrency=2)
    running = system.create(a_gated_task("drain"), a_gated_task("drain", task_type="gated_sync"))
    for task_id in running:
        system.started(task_id)
    waiting = system.create(a_task("echo"), a_task("echo"))

    drain(system, worker)
    system.open_gate("drain")

    assert ExitCode.DRAINED == worker.exit_code(within=10)
    assert [(TaskStatus.SUCCEEDED, 1)] * 2 == [(system.task(one).status, system.task(one).attempt) for one in running]
    assert [(TaskStatus.QUEUED, 0)] * 2 == [(system.task(one).status, system.task(one).attempt) for one in waiting]
    system.worker(PATIENT)
    assert [(TaskStatus.SUCCEEDED, 1)] * 2 == [(system.ended(one).status, system.ended(one).attempt) for one in waiting]


def test_what_the_drain_cannot_finish_is_handed_to_a_peer_at_once(system: System) -> None:
    worker = system.worker(PATIENT | {"DTQ_DRAIN_TIMEOUT_S": "0.5"}, concurrency=2)
    tasks = system.create(a_gated_task("never"), a_gated_task("never", task_type="gated_sync"))
    for task_id in tasks:
        system.started(task_id)
    peer = system.worker(PATIENT, concurrency=2)

    worker.terminate()
    code = worker.exit_code(within=5)
    ended_at = time.monotonic()
    for task_id in tasks:
        system.started(task_id, attempt=2, within=5)

    assert ExitCode.WORK_LEFT == code
    begun = [mark for task_id in tasks for mark in system.journal.of(task_id) if mark.attempt == 2]
    assert max(mark.at for mark in begun) - ended_at < 1
    assert {peer.worker_id} == {mark.worker_id for mark in begun}
    system.open_gate("never", attempt=2)
    assert [(TaskStatus.SUCCEEDED, 2)] * 2 == [(system.ended(one).status, system.ended(one).attempt) for one in tasks]


def test_a_second_signal_ends_the_worker_now(system: System) -> None:
    worker = system.worker(PATIENT | {"DTQ_DRAIN_TIMEOUT_S": "60"}, concurrency=2)
    tasks = system.create(a_gated_task("never"), a_gated_task("never", task_type="gated_sync"))
    for task_id in tasks:
        system.started(task_id)

    drain(system, worker)
    worker.terminate()

    assert ExitCode.WORK_LEFT == worker.exit_code(within=3)
    assert [TaskStatus.RUNNING] * 2 == [system.task(task_id).status for task_id in tasks]
