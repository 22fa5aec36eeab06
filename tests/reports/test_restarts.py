"""Workers come and go, in good order and not: no work goes with them, and nothing of them stays."""

import pytest

from dtq.domain.admission import DEFAULT_QUEUE
from dtq.domain.status import TaskStatus
from dtq.domain.task import QueueName, WorkerId
from tests.judged import census
from tests.judged.sizes import FULL, QUICK
from tests.judged.system import System, Worker, a_gated_task, a_task
from tests.judged.waiting import wait_until
from tests.reports.scene import WITHIN_S, count_statuses, see_each_run_once, sized, starts_of, submitted

RESTARTS = sized(6, 20)
TASKS = sized(400, 5000)
CYCLES = sized(8, 200)
PATIENT = {"DTQ_VISIBILITY_TIMEOUT_S": "60", "DTQ_HEARTBEAT_INTERVAL_S": "0.5"}
"""So long a visibility timeout that nothing moves by it."""
EXPIRED_WITHIN_S = 20.0
TERM_MS = 10_000


def consumers(system: System) -> set[str]:
    """Every consumer that any stream of the default queue knows."""
    streams = [stream for stream in system.keys.streams(DEFAULT_QUEUE) if system.redis.exists(stream)]
    return {one["name"] for stream in streams for one in system.redis.xinfo_consumers(stream, "workers")}


@pytest.mark.timeout(300)
def test_a_rolling_restart_under_load_loses_nothing(system: System) -> None:
    """R12."""
    workers = [system.worker(QUICK) for _ in range(sized(3, 10))]
    accepted: list[str] = []

    killed = 0
    for turn in range(RESTARTS):
        share = TASKS // RESTARTS
        accepted += system.create(*[a_task("brief", payload={"seconds": 0.02}, max_attempts=10)] * share)
        leaving: Worker = workers.pop(0)
        if turn % 2:
            killed += 1
            leaving.kill()
        else:
            leaving.terminate()
        workers.append(system.worker(QUICK))
    census.come_to_rest(system, dict.fromkeys(accepted, "brief"), within=120)

    found = census.see_every_task_ended_once(system, dict.fromkeys(accepted, "brief"))
    assert {TaskStatus.SUCCEEDED} == set(found.values())
    again = {task_id for task_id, starts in starts_of(system, accepted).items() if starts != [1]}
    assert len(again) <= killed * 4
    census.see_nothing_left(system)


def test_a_consumer_that_owns_work_is_kept_though_its_worker_is_forgotten(system: System) -> None:
    """R12: a leader clears up between the end of a worker and the moment at which its work may be taken over."""
    slow = {"DTQ_VISIBILITY_TIMEOUT_S": "8", "DTQ_HEARTBEAT_INTERVAL_S": "0.5"}
    leader = system.worker(slow | {"DTQ_WORKER_QUEUE": "elsewhere"})
    victim = system.worker(slow)
    tasks = system.create(*[a_gated_task("kept")] * 4)
    for task_id in tasks:
        system.started(task_id)

    victim.kill()
    wait_until(
        lambda: not system.redis.sismember(system.keys.workers, victim.worker_id), within=20, what="it is forgotten"
    )
    # a new leader clears up at once
    leader.terminate()
    assert 0 == leader.exit_code(within=20)
    heir = system.worker(slow)
    wait_until(lambda: system.redis.exists(system.keys.lock), within=20, what="the heir leads")
    system.open_gate("kept", attempt=2)

    for task_id in tasks:
        assert TaskStatus.SUCCEEDED is system.ended(task_id, within=WITHIN_S).status
    assert {task_id: [1, 2] for task_id in tasks} == starts_of(system, tasks)
    assert {heir.worker_id} == {system.task(task_id).worker_id for task_id in tasks}


def test_a_worker_that_is_told_to_end_in_a_burst_begins_nothing_more(system: System) -> None:
    """R09."""
    api = system.api(PATIENT)
    worker = system.worker(PATIENT, concurrency=4)
    running = [submitted(api, "gated", {"gate": "burst"}, timeout_ms=600_000) for _ in range(4)]
    for task_id in running:
        system.started(task_id)
    waiting = [submitted(api, "echo") for _ in range(50)]

    worker.terminate()
    wait_until(lambda: system.status_of(worker) == "draining", within=10, what="it drains")
    waiting += [submitted(api, "echo") for _ in range(50)]
    system.open_gate("burst")
    assert 0 == worker.exit_code(within=20)

    assert system.status_of(worker) is None
    see_each_run_once(system, running)
    assert {TaskStatus.QUEUED: 100} == count_statuses(system, waiting)
    system.worker(PATIENT)
    see_each_run_once(system, waiting)
    assert not system.journal.marks(lambda mark: mark.task_id in waiting and mark.worker_id == worker.worker_id)
    census.see_nothing_left(system)


@pytest.mark.timeout(900)
def test_a_new_name_for_each_start_leaves_no_consumer_and_no_worker_behind(system: System) -> None:
    """R13."""
    api = system.api(QUICK)
    for cycle in range(CYCLES):
        worker = system.worker(QUICK)
        (task_id,) = system.create(a_task("echo", priority=cycle % 10))
        system.ended(task_id)
        if cycle % 2:
            worker.kill()
        else:
            worker.terminate()
            assert 0 == worker.exit_code(within=20)
    heir = system.worker(QUICK)

    def known() -> set[str]:
        listed = {one["worker_id"] for one in api.http.get("/api/v1/workers").json()["workers"]}
        return listed | set(system.redis.smembers(system.keys.workers))

    wait_until(lambda: known() == {heir.worker_id}, within=WITHIN_S, what="only the living one is known")
    # a new leader clears up at once, an old one once a minute
    last = system.worker(QUICK)
    heir.terminate()
    wait_until(
        lambda: consumers(system) <= {last.worker_id}, within=2 * WITHIN_S, what="no consumer of another is left"
    )
    assert known() == {last.worker_id}


@pytest.mark.timeout(900)
def test_leaders_that_are_killed_lose_no_due_work_and_leave_no_lock_for_ever(system: System) -> None:
    """S02 and S08: each leader dies with a wave of due work behind it, in the full size in the middle of it."""
    waves, number = sized(1, 20), sized(100, 2000)
    accepted: list[str] = []
    for _ in range(waves):
        worker = system.worker(QUICK, concurrency=20)
        tasks = system.create(*[a_task("echo", delay_seconds=1, max_attempts=10)] * number)
        accepted += tasks
        enough = number // 2 if FULL else number
        wait_until(lambda: system.count_ended(tasks) >= enough, within=90, what="a wave has run")  # noqa: B023 - called at once
        assert 0 < system.redis.pttl(system.keys.lock) <= TERM_MS
        worker.kill()
    accepted += system.create(a_task("echo", delay_seconds=1))
    system.worker(QUICK, concurrency=20)

    wait_until(lambda: system.count_ended(accepted) == len(accepted), within=120, what="all end")
    assert {TaskStatus.SUCCEEDED: len(accepted)} == count_statuses(system, accepted)
    wait_until(lambda: system.redis.zcard(system.keys.claimed) == 0, within=90, what="nothing is on loan")
    census.see_nothing_left(system)


def test_a_killed_worker_that_returns_under_its_own_name_finds_its_work(system: System) -> None:
    """S03: nobody waits for the visibility timeout, and nobody may use the name while its owner seems to live."""
    named = PATIENT | {"DTQ_WORKER_ID": "the-same"}
    first = system.worker(named, ready=False)
    (task_id,) = system.create(a_gated_task("mine"))
    system.started(task_id)
    clash = system.worker(named, ready=False)
    assert 2 == clash.exit_code(within=20)

    first.kill()
    key = system.keys.worker(WorkerId("the-same"))
    wait_until(lambda: not system.redis.exists(key), within=EXPIRED_WITHIN_S, what="its sign of life is gone")
    system.worker(named, ready=False)
    system.started(task_id, attempt=2, within=20)
    system.open_gate("mine", attempt=2)

    assert TaskStatus.SUCCEEDED is system.ended(task_id).status


def test_a_worker_touches_its_own_queue_only(system: System) -> None:
    """S13."""
    api = system.api()
    one = system.worker(QUICK | {"DTQ_WORKER_QUEUE": "one"})
    theirs = submitted(api, "echo", queue="two")
    mine = submitted(api, "echo", queue="one")

    assert one.worker_id == system.ended(mine).worker_id
    assert TaskStatus.QUEUED is system.task(theirs).status
    assert {0} >= {group["pending"] for group in system.redis.xinfo_groups(system.keys.stream(QueueName("two"), 5))}
    two = system.worker(QUICK | {"DTQ_WORKER_QUEUE": "two"})
    see_each_run_once(system, [theirs])
    assert two.worker_id == system.task(theirs).worker_id


def test_a_worker_without_the_handler_gives_a_task_up_where_it_can_be_revived(system: System) -> None:
    """S13: one attempt, as the contract has it; the new build gets the task by a requeue."""
    api = system.api()
    old = system.worker(QUICK | {"DTQ_TASK_MODULES": "tests.reports.handlers"})
    (task_id,) = system.create(a_task("echo", max_attempts=5))
    ended = system.ended(task_id)
    assert ended.failure is not None
    assert (TaskStatus.DEAD_LETTERED, 1) == (ended.status, ended.attempt)
    old.terminate()
    assert 0 == old.exit_code(within=20)

    system.worker(QUICK)
    assert 202 == api.http.post(f"/api/v1/dlq/{task_id}/requeue").status_code
    assert TaskStatus.SUCCEEDED is system.ended(task_id).status
