"""A command is taken away in the middle: nothing is called done that is not, and nothing is left in two places."""

from concurrent.futures import ThreadPoolExecutor

import httpx

from dtq.domain.admission import DEFAULT_QUEUE
from dtq.domain.audit import DONE
from dtq.domain.events import EventType
from dtq.domain.status import TaskStatus
from tests.judged import census
from tests.judged.sizes import QUICK
from tests.judged.system import System, a_gated_task, a_task
from tests.judged.test_chaos import Witness
from tests.judged.waiting import holds_for, wait_until
from tests.reports.scene import User, count_statuses, see_each_run_once, sized, starts_of

NUMBER = sized(20, 50)
DENIED_S = 3.0
"""Longer than the visibility timeout."""


def test_without_its_acknowledgement_nothing_is_called_done_and_all_of_it_is_once_that_is_back(
    own_system: System,
) -> None:
    """R06."""
    system = own_system
    user = User(system, "worker")
    worker = system.worker(QUICK | {"DTQ_REDIS_URL": user.url}, concurrency=NUMBER)
    system.worker(QUICK)
    tasks = system.create(*[a_gated_task("denied")] * NUMBER)
    for task_id in tasks:
        system.started(task_id)
    mine = {mark.task_id for mark in system.journal.marks(lambda mark: mark.worker_id == worker.worker_id)}

    user.deny("xack")
    system.open_gate("denied")
    holds_for(
        lambda: set(count_statuses(system, mine)) == {TaskStatus.RUNNING},
        seconds=DENIED_S,
        what="none of its tasks is called done, and none is taken from it",
    )
    user.allow("xack")

    see_each_run_once(system, tasks)
    census.see_nothing_left(system)


def test_a_worker_that_dies_with_its_results_leaves_them_to_be_made_again(own_system: System) -> None:
    """R06."""
    system = own_system
    user = User(system, "worker")
    worker = system.worker(QUICK | {"DTQ_REDIS_URL": user.url}, concurrency=NUMBER)
    tasks = system.create(*[a_gated_task("denied")] * NUMBER)
    for task_id in tasks:
        system.started(task_id)
    user.deny("xack")
    system.open_gate("denied")
    system.open_gate("denied", attempt=2)
    ends = system.journal
    wait_until(
        lambda: len(ends.marks(lambda mark: mark.what == "end")) == NUMBER, within=20, what="all handlers have ended"
    )

    worker.kill()
    user.allow("xack")
    system.worker(QUICK, concurrency=NUMBER)
    wait_until(lambda: system.count_ended(tasks) == NUMBER, within=30, what="all end")

    assert {task_id: [1, 2] for task_id in tasks} == starts_of(system, tasks)
    assert {TaskStatus.SUCCEEDED: NUMBER} == count_statuses(system, tasks)
    census.see_nothing_left(system)


def test_entries_of_finished_tasks_are_removed_without_a_run(system: System) -> None:
    """R06: what a finish leaves that was stopped between record and acknowledgement, or a copy of it."""
    worker = system.worker(QUICK, concurrency=NUMBER)
    tasks = system.create(*[a_gated_task("copied")] * NUMBER)
    for task_id in tasks:
        system.started(task_id)
    stream = system.keys.stream(DEFAULT_QUEUE, 5)
    copies = [fields for _, fields in system.redis.xrange(stream)]
    system.open_gate("copied")
    see_each_run_once(system, tasks)
    finished = {task_id: system.task(task_id) for task_id in tasks}

    witness = Witness(system)
    (marker,) = system.create(a_task("echo"))
    system.ended(marker)
    wait_until(lambda: any(event["task_id"] == marker for event in witness.heard), within=10, what="events are heard")
    for fields in copies:
        system.redis.xadd(stream, fields)
    wait_until(lambda: system.redis.xlen(stream) == 0, within=20, what="the copies are gone")
    (marker,) = system.create(a_task("echo"))
    system.ended(marker)

    assert NUMBER == len(copies)
    assert {task_id: [1] for task_id in tasks} == starts_of(system, tasks)
    assert finished == {task_id: system.task(task_id) for task_id in tasks}
    told = {event["type"] for event in witness.heard if event["task_id"] in finished}
    witness.stop()
    assert told <= {EventType.DUPLICATE_ABSORBED}
    assert worker.alive()
    census.see_nothing_left(system)


def test_due_work_is_run_once_though_the_schedule_may_not_be_cleared_for_a_while(own_system: System) -> None:
    """R20."""
    system = own_system
    number = sized(50, 500)
    user = User(system, "worker")
    for _ in range(2):
        system.worker(QUICK | {"DTQ_REDIS_URL": user.url})
    tasks = system.create(*[a_task("echo", delay_seconds=1)] * number)

    user.deny("zrem")
    holds_for(
        lambda: all(found in ([], [1]) for found in starts_of(system, tasks).values()),
        seconds=DENIED_S,
        what="none is started twice",
    )
    user.allow("zrem")

    see_each_run_once(system, tasks)
    wait_until(lambda: system.redis.zcard(system.keys.claimed) == 0, within=10, what="nothing is on loan")
    census.see_nothing_left(system)


def dead_letters(system: System, number: int) -> list[str]:
    """So many tasks that have been given up, before nobody works any more."""
    worker = system.worker(QUICK)
    tasks = system.create(*[a_task("hopeless", max_attempts=1)] * number)
    for task_id in tasks:
        assert TaskStatus.DEAD_LETTERED is system.ended(task_id).status
    worker.terminate()
    assert 0 == worker.exit_code(within=20)
    return [*tasks]


def test_a_requeue_that_cannot_be_made_whole_is_not_begun(own_system: System) -> None:
    """R32."""
    system = own_system
    (task_id,) = dead_letters(system, 1)
    user = User(system, "api")
    api = system.api({"DTQ_REDIS_URL": user.url})

    for command in ("xdel", "xadd"):
        user.deny(command)
        refused = api.http.post(f"/api/v1/dlq/{task_id}/requeue")
        assert (httpx.codes.SERVICE_UNAVAILABLE, "BROKER_UNAVAILABLE") == (
            refused.status_code,
            refused.json()["code"],
        ), refused.text
        user.allow(command)
        assert 1 == system.redis.xlen(system.keys.dead_letters)
        assert 0 == system.redis.xlen(system.keys.stream(DEFAULT_QUEUE, 5))
        assert TaskStatus.DEAD_LETTERED is system.task(task_id).status

    assert httpx.codes.ACCEPTED == api.http.post(f"/api/v1/dlq/{task_id}/requeue").status_code
    assert 0 == system.redis.xlen(system.keys.dead_letters)
    assert 1 == system.redis.xlen(system.keys.stream(DEFAULT_QUEUE, 5))


def test_of_many_requeues_at_once_one_is_made(system: System) -> None:
    """R32."""
    (task_id,) = dead_letters(system, 1)
    api = system.api()

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: api.http.post(f"/api/v1/dlq/{task_id}/requeue").status_code, range(20)))

    assert 1 == answers.count(httpx.codes.ACCEPTED)
    assert {httpx.codes.ACCEPTED, httpx.codes.CONFLICT} == set(answers)
    assert 1 == system.redis.xlen(system.keys.stream(DEFAULT_QUEUE, 5))
    audited = [fields for _, fields in system.redis.xrange(system.keys.audit) if fields.get("task_id") == task_id]
    assert 1 == sum(fields["outcome"] == DONE for fields in audited), audited
    system.worker(QUICK)
    assert TaskStatus.DEAD_LETTERED is system.ended(task_id).status
    assert [1, 1] == system.journal.starts(task_id)


def test_of_requeue_discard_and_purge_at_once_each_letter_meets_one(system: System) -> None:
    """R32."""
    tasks = dead_letters(system, sized(20, 100))
    api = system.api()
    acts = [f"/api/v1/dlq/{task_id}/{act}" for task_id in tasks for act in ("requeue", "discard")]
    acts.insert(len(acts) // 2, "/api/v1/dlq/purge")

    with ThreadPoolExecutor(8) as pool:
        answers = dict(zip(acts, pool.map(api.http.post, acts), strict=True))

    requeued = {one for one in tasks if answers[f"/api/v1/dlq/{one}/requeue"].is_success}
    discarded = {one for one in tasks if answers[f"/api/v1/dlq/{one}/discard"].is_success}
    assert set() == requeued & discarded
    assert len(tasks) == len(requeued) + len(discarded) + answers["/api/v1/dlq/purge"].json()["purged"]
    assert 0 == system.redis.xlen(system.keys.dead_letters)
    assert requeued == {fields["task_id"] for _, fields in system.redis.xrange(system.keys.stream(DEFAULT_QUEUE, 5))}
