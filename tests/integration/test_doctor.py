"""dtq doctor on real processes: what was spoiled by hand is found and repaired, and nothing where all is well."""

import json
from threading import Event, Thread
from typing import Any

import pytest

from dtq.domain.findings import Kind
from dtq.entrypoints.cli.exits import Exit
from tests.contract.redis_harness import rules_of
from tests.integration.damage import CORRUPTIONS, without_home
from tests.judged.sizes import QUICK
from tests.judged.system import Api, System, a_task
from tests.judged.systems import own_system, pytest_runtest_makereport
from tests.judged.waiting import wait_until

__all__ = ["own_system", "pytest_runtest_makereport"]

PLENTY_S = 30

BY_HAND = {Kind.WRONG_TYPE, Kind.UNREADABLE, Kind.FOREIGN, Kind.EXHAUSTED}

Found = dict[str, set[str]]


def doctor(system: System, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = system.command("doctor", "--json", *arguments, settings=QUICK)
    assert done.returncode in {Exit.DONE, Exit.UNWELL}, done.stderr
    return done.returncode, json.loads(done.stdout)


def found_by(report: dict[str, Any]) -> Found:
    return {one["kind"]: {example["subject"] for example in one["examples"]} for one in report["findings"]}


def prepared(system: System) -> None:
    """Let a worker make groups, results and dead letters, and leave."""
    worker = system.worker(QUICK)
    for task_id in system.create(*(a_task("hopeless") for _ in range(2)), a_task("echo", idempotency_key="whole")):
        system.ended(task_id)
    worker.close()
    system.redis.delete(system.keys.lock)


def test_each_corruption_by_hand_is_found_and_repaired_and_the_tasks_finish(own_system: System) -> None:
    system = own_system
    prepared(system)
    code, report = doctor(system)
    assert (Exit.DONE, []) == (code, report["findings"])

    planted: Found = {}
    for corrupt in CORRUPTIONS:
        kind, subject = corrupt(system)
        planted.setdefault(kind, set()).add(subject)

    code, report = doctor(system)
    assert Exit.UNWELL == code
    seen = found_by(report)
    # the tasks that lost their places are missing from the count of their queue, until they have one again
    assert planted == {**seen, Kind.COUNT: seen[Kind.COUNT] - {"default"}}

    code, report = doctor(system, "--repair")
    assert Exit.UNWELL == code
    assert BY_HAND == {one["kind"] for one in report["findings"] if one["left"]}
    trail = {entry.action for entry in system.run(system.backend.audit.recent(limit=100))}
    assert {f"doctor.{kind}" for kind in planted.keys() - BY_HAND} | {"doctor.repair"} <= trail

    assert {kind: planted[kind] for kind in BY_HAND} == found_by(doctor(system)[1])
    for queue in ("default", "counted", "miscounted", "forgotten"):
        system.worker({**QUICK, "DTQ_WORKER_QUEUE": queue})
    living = [one for one in system.redis.zrange(system.keys.recent, 0, -1) if one not in planted[Kind.UNREADABLE]]
    wait_until(lambda: len(living) == system.count_ended(living), within=60, what="all tasks end")


def test_a_person_reads_what_is_wrong_and_what_was_done(own_system: System) -> None:
    system = own_system
    prepared(system)
    _, task_id = without_home(system)

    found = system.command("doctor", settings=QUICK)
    assert (Exit.UNWELL, "") == (found.returncode, found.stderr)
    assert "task_without_home  1      --repair" in found.stdout
    assert f"  {task_id}: queued, and its entry" in found.stdout

    repaired = system.command("doctor", "--repair", settings=QUICK)
    assert (Exit.DONE, "") == (repaired.returncode, repaired.stderr)
    assert "task_without_home  1      1         0" in repaired.stdout

    assert "nothing is wrong" in system.command("doctor", settings=QUICK).stdout


def test_what_is_denied_is_told_and_the_rest_examined(own_system: System) -> None:
    system = own_system
    prepared(system)
    _, task_id = without_home(system)
    rules = rules_of(system.prefix)
    system.redis.execute_command("ACL", "SETUSER", "plain", *rules)
    url = system.server.url.replace("redis://", "redis://plain:PASSWORD@")

    done = system.command("doctor", "--json", settings={**QUICK, "DTQ_REDIS_URL": url})

    report = json.loads(done.stdout)
    assert {Kind.HOMELESS: {task_id}} == found_by(report)
    assert {
        "types and lifetimes of keys",
        "dead letters older than the oldest that is left",
        "how far groups have read, and which streams are used up",
    } == {one["what"] for one in report["not_examined"]}


def load(system: System, api: Api, stop: Event, ids: list[str]) -> None:
    """Submit, delay, fail, retry, and cancel until told to stop; note the tasks.

    All of them are kept: as fast as it goes, there would be more to examine each time.
    """
    while not stop.wait(0.02):
        number = len(ids)
        ids += system.create(
            a_task("brief", payload={"seconds": 0.02, "fails": number % 3}, idempotency_key=f"key-{number}"),
            a_task("brief", payload={"fails": 1}, delay_seconds=0.3, priority=number % 10),
            a_task("hopeless", payload={"n": number}) if number % 20 == 0 else a_task("echo"),
            a_task("brief", payload={"seconds": 0.5}, delay_seconds=0.1),
        )
        api.http.post(f"/api/v1/tasks/{ids[-1]}/cancel")
        api.http.post(f"/api/v1/dlq/{ids[0]}/requeue")


@pytest.mark.timeout(300)  # twenty times two looks, two seconds apart
def test_twenty_examinations_of_a_healthy_system_under_load_find_nothing(own_system: System) -> None:
    system = own_system
    api = system.api(QUICK)
    for _ in range(2):
        system.worker(QUICK, concurrency=8)
    stop, ids = Event(), list[str]()
    thread = Thread(target=load, args=(system, api, stop, ids))
    thread.start()
    try:
        wait_until(lambda: len(ids) > 400, within=PLENTY_S, what="there is something to examine")
        reports = [api.http.get("/api/v1/doctor", timeout=60).json() for _ in range(20)]
    finally:
        stop.set()
        thread.join()

    assert [[]] * 20 == [report["findings"] for report in reports]
    # only counts may be too much in motion to be told
    denied = {one["what"] for report in reports for one in report["not_examined"]}
    assert denied <= {"counts of scheduled tasks"}
