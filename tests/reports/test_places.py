"""Entries, groups and places that somebody or something takes away: no task stays in the air, and no loop spins."""

import time

import pytest

from dtq.domain.admission import DEFAULT_QUEUE
from dtq.domain.status import TaskStatus
from dtq.domain.task import QueueName
from tests.judged import census
from tests.judged.sizes import QUICK
from tests.judged.system import System, Worker, a_gated_task
from tests.judged.waiting import wait_until
from tests.reports.scene import WITHIN_S, see_each_run_once, sized, starts_of, submitted

GROUP = "workers"
LINES_A_SECOND = 5
STREAM = 5
ELSEWHERE = QUICK | {"DTQ_WORKER_QUEUE": "elsewhere"}


def follow(system: System, leader: Worker) -> None:
    """Put another leader in the place of one: it looks for strays at once, an old one each two minutes."""
    leader.terminate()
    assert 0 == leader.exit_code(within=20)
    system.worker(ELSEWHERE)


def see_no_entry_left(system: System) -> None:
    """See that the default queue's streams are empty, and that nobody owns anything."""
    for stream in system.keys.streams(DEFAULT_QUEUE):
        assert 0 == system.redis.xlen(stream), stream
        assert 0 == system.redis.xpending(stream, GROUP)["pending"], stream


def entries_of(system: System, task_ids: list[str]) -> list[str]:
    """The entries of these tasks, in their order."""
    stream = system.keys.stream(DEFAULT_QUEUE, STREAM)
    found = {fields["task_id"]: entry for entry, fields in system.redis.xrange(stream)}
    return [found[task_id] for task_id in task_ids]


@pytest.mark.parametrize("begun", [True, False], ids=["running", "queued"])
def test_a_task_whose_entry_vanished_gets_another_one(system: System, *, begun: bool) -> None:
    """R08."""
    leader = system.worker(ELSEWHERE)
    worker = system.worker(QUICK, concurrency=1)
    (first, second) = (str(one) for one in system.create(a_gated_task("first"), a_gated_task("second")))
    system.started(first)
    victim = first if begun else second
    stream = system.keys.stream(DEFAULT_QUEUE, STREAM)
    (entry,) = entries_of(system, [victim])

    system.redis.xack(stream, GROUP, entry)
    system.redis.xdel(stream, entry)
    worker.kill()
    follow(system, leader)
    system.worker(QUICK)
    for name in ("first", "second"):
        for attempt in (1, 2):
            system.open_gate(name, attempt=attempt)

    for task_id in (first, second):
        assert TaskStatus.SUCCEEDED is system.ended(task_id, within=WITHIN_S).status
    assert {first: [1, 2], second: [1]} == starts_of(system, [first, second])
    see_no_entry_left(system)


@pytest.mark.timeout(300)
def test_nothing_that_waits_or_runs_is_trimmed_however_much_there_is(system: System) -> None:
    """R11."""
    number, held = sized(1500, 15_000), sized(20, 100)
    settings = QUICK | {"DTQ_MAX_QUEUE_DEPTH": "30000"}
    api, victim = system.api(settings), system.worker(settings, concurrency=held)
    running = system.create(*[a_gated_task("held")] * held)
    for task_id in running:
        system.started(task_id)
    assert 200 == api.http.post("/api/v1/queue/default/pause").status_code
    bodies = [{"task_type": "echo", "payload": {"n": n}} for n in range(number)]
    waiting = [
        item["task_id"]
        for at in range(0, number, 100)
        for item in api.http.post("/api/v1/tasks/batch", json={"tasks": bodies[at : at + 100]}).json()["results"]
    ]

    victim.kill()
    system.open_gate("held", attempt=2)
    for _ in range(2):
        system.worker(settings, concurrency=50)
    assert number + held == system.redis.xlen(system.keys.stream(DEFAULT_QUEUE, STREAM))
    assert 200 == api.http.post("/api/v1/queue/default/resume").status_code

    everything = [*waiting, *running]
    wait_until(lambda: system.count_ended(everything) == len(everything), within=240, what="all end")
    assert {task_id: [1] for task_id in waiting} | {task_id: [1, 2] for task_id in running} == starts_of(
        system, everything
    )
    census.see_nothing_left(system)


def test_abandoned_entries_whose_data_is_gone_stop_no_reaping(system: System) -> None:
    """R14."""
    leader = system.worker(ELSEWHERE)
    victim = system.worker(QUICK, concurrency=10)
    tasks = [str(one) for one in system.create(*[a_gated_task("gone")] * 10)]
    for task_id in tasks:
        system.started(task_id)
    stream = system.keys.stream(DEFAULT_QUEUE, STREAM)
    victim.kill()

    assert 3 == system.redis.xdel(stream, *entries_of(system, tasks[:3]))
    system.open_gate("gone", attempt=2)
    follow(system, leader)
    system.worker(QUICK, concurrency=10)

    for task_id in tasks:
        assert TaskStatus.SUCCEEDED is system.ended(task_id, within=WITHIN_S).status
    assert {task_id: [1, 2] for task_id in tasks} == starts_of(system, tasks)
    see_no_entry_left(system)


@pytest.mark.parametrize("harm", ["flush", "groups"])
def test_workers_whose_groups_vanish_go_on_by_themselves_and_quietly(own_system: System, harm: str) -> None:
    """R15."""
    system = own_system
    api = system.api(QUICK)
    workers = [system.worker(QUICK), system.worker(QUICK | {"DTQ_WORKER_QUEUE": "new"})]
    see_each_run_once(system, [submitted(api, "echo")])
    before = [len(worker.log.splitlines()) for worker in workers]
    began_at = time.monotonic()

    if harm == "flush":
        system.redis.flushall()
    else:
        for queue in (DEFAULT_QUEUE, QueueName("new")):
            for stream in system.keys.streams(queue):
                if system.redis.exists(stream):
                    system.redis.xgroup_destroy(stream, GROUP)
    tasks = [submitted(api, "echo", queue=queue) for queue in ("default", "new") for _ in range(5)]

    see_each_run_once(system, tasks, within=10)
    # long enough that a loop without rest would show
    wait_until(lambda: time.monotonic() - began_at > 3, within=5, what="three seconds have passed")
    seconds = time.monotonic() - began_at
    for worker, lines in zip(workers, before, strict=True):
        grown = len(worker.log.splitlines()) - lines - 2 * len(tasks)
        assert grown < LINES_A_SECOND * seconds, worker.log
        assert worker.alive()
    assert api.answers("/ready")


def test_what_was_submitted_before_anybody_served_its_queue_is_not_skipped(system: System) -> None:
    """R15."""
    api = system.api(QUICK)
    tasks = [submitted(api, "echo", queue="early", priority=n % 10) for n in range(20)]

    system.worker(QUICK | {"DTQ_WORKER_QUEUE": "early"})

    see_each_run_once(system, tasks)
