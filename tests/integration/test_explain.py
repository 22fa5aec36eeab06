"""dtq explain on whole deployments: what it says is what then happens."""

import json
from pathlib import Path
from typing import Any

from tests.judged.system import System, Worker, a_gated_task, a_task
from tests.judged.waiting import wait_until

PLENTY_S = 30
LONG = {"DTQ_VISIBILITY_TIMEOUT_S": "60"}
"""Of workers whose work is not to be taken over while a test looks at it."""
OTHER_TYPES = """
from dtq import task

@task("something_else")
def something_else(payload, ctx):
    return payload
"""


def explained(system: System, task_id: str) -> dict[str, Any]:
    done = system.command("explain", task_id, "--json")
    assert (0, "") == (done.returncode, done.stderr)
    body: dict[str, Any] = json.loads(done.stdout)
    return body


def codes(body: dict[str, Any]) -> list[str]:
    return [*(reason["code"] for reason in body["reasons"]), f"next: {body['next']['code']}"]


def beside_others(body: dict[str, Any]) -> list[str]:
    return [one for one in codes(body) if one != "ahead"]


def figures(body: dict[str, Any], code: str) -> dict[str, Any]:
    (found,) = [reason["figures"] for reason in body["reasons"] if reason["code"] == code]
    return dict(found)


def until(system: System, task_id: str, expected: list[str]) -> dict[str, Any]:
    """Ask until the answer has these codes: what workers say of themselves comes with their next heartbeat."""
    last: dict[str, Any] = {}

    def is_so() -> bool:
        last.update(explained(system, task_id))
        return codes(last) == expected

    wait_until(is_so, within=PLENTY_S, what=f"{expected}")
    return last


def occupied(system: System, *, concurrency: int) -> Worker:
    """A worker, each of whose slots has a task that waits at the gate."""
    worker = system.worker(LONG, concurrency=concurrency)
    for task_id in system.create(*[a_gated_task("slots")] * concurrency):
        system.started(task_id)
    return worker


def test_paused_without_a_worker_and_behind_others(system: System) -> None:
    *_, task_id = system.create(*[a_task("echo", priority=9)] * 3, *[a_task("echo")] * 3)
    system.command("queue", "pause", "default")

    body = explained(system, task_id)

    assert ["paused", "no_worker", "ahead", "next: resume"] == codes(body)
    assert {"above": 3, "before": 2} == figures(body, "ahead")
    system.worker()
    assert ["paused", "ahead", "next: resume"] == codes(explained(system, task_id))

    system.command("queue", "resume", "default")

    system.ended(task_id)
    assert ["ended", "next: nothing"] == codes(explained(system, task_id))


def test_busy_workers(system: System) -> None:
    occupied(system, concurrency=2)
    first, second = system.create(a_task("echo"), a_task("echo"))

    body = until(system, second, ["all_busy", "ahead", "next: wait_for_turn"])

    assert {"workers": 1, "slots": 2, "taken": 2} == figures(body, "all_busy")
    assert {"above": 0, "before": 1} == figures(body, "ahead")
    assert ["all_busy", "next: wait_for_turn"] == codes(explained(system, first))
    system.open_gate("slots")
    system.ended(second)


def test_a_type_that_no_worker_knows(system: System, tmp_path: Path) -> None:
    (tmp_path / "other_types.py").write_text(OTHER_TYPES)
    stranger = system.worker({"DTQ_TASK_MODULES": "other_types"})
    system.command("queue", "pause", "default")
    # the first one may be read by a worker that waits already, and handed back: then it is not ahead of the second
    _, task_id = system.create(a_task("echo"), a_task("echo"))

    assert ["paused", "no_worker_for_type", "next: resume"] == beside_others(explained(system, task_id))
    system.worker()
    assert ["paused", "type_not_everywhere", "next: resume"] == beside_others(explained(system, task_id))

    stranger.terminate()
    stranger.exit_code(within=PLENTY_S)
    system.command("queue", "resume", "default")
    system.ended(task_id)


def test_a_worker_that_drains(system: System) -> None:
    worker = occupied(system, concurrency=1)
    worker.terminate()
    (task_id,) = system.create(a_task("echo"))

    body = until(system, task_id, ["workers_draining", "next: start_worker"])

    assert {"queue": "default", "draining": 1, "starting": 0} == figures(body, "workers_draining")
    system.open_gate("slots")
    assert 0 == worker.exit_code(within=PLENTY_S)
    assert ["no_worker", "next: start_worker"] == codes(explained(system, task_id))


def test_a_delay_that_passes_with_and_without_a_leader(system: System) -> None:
    (task_id,) = system.create(a_task("echo", delay_seconds=600))
    body = explained(system, task_id)
    assert ["delayed", "no_worker", "next: move_when_due"] == codes(body)
    assert 0 < figures(body, "delayed")["due_in_s"] <= 600

    (soon,) = system.create(a_task("echo", delay_seconds=0.01))
    until(system, soon, ["no_leader", "no_worker", "next: start_worker"])

    system.worker()
    system.ended(soon)


def test_running_and_asked_to_stop(system: System) -> None:
    worker = system.worker()
    (task_id,) = system.create({**a_task("stubborn"), "timeout_ms": 600_000})
    system.started(task_id)

    body = explained(system, task_id)

    assert ["running", "next: finish"] == codes(body)
    running = figures(body, "running")
    assert (worker.worker_id, 1) == (running["worker_id"], running["attempt"])
    assert 500 < running["deadline_in_s"] <= 600
    assert ["lease_left_s"] == body["reasons"][0]["about"]
    # so that the request is seen before it is carried out
    worker.freeze()
    system.command("cancel", task_id)
    assert "cancel_requested" in codes(explained(system, task_id))
    worker.thaw()
    system.ended(task_id)
    assert ["ended", "next: submit_again"] == codes(explained(system, task_id))


def test_a_lost_worker_and_who_takes_over(system: System) -> None:
    victim = system.worker(LONG, concurrency=1)
    (task_id,) = system.create(a_gated_task("lost"))
    system.started(task_id)
    victim.kill()

    body = until(system, task_id, ["lost", "no_worker", "next: start_worker"])
    assert victim.worker_id == figures(body, "lost")["worker_id"]

    heir = system.worker()
    body = explained(system, task_id)
    if codes(body)[0] == "lost":
        assert ["lost", "next: take_over"] == codes(body)
        assert "runs it as attempt 2 of 5" in body["next"]["text"]
    system.started(task_id, attempt=2, within=PLENTY_S)
    running = figures(until(system, task_id, ["running", "next: finish"]), "running")
    assert (heir.worker_id, 2) == (running["worker_id"], running["attempt"])
    system.open_gate("lost", attempt=2)
    system.ended(task_id)


def test_a_retry_and_a_dead_letter(system: System) -> None:
    system.worker({"DTQ_RETRY_BASE_DELAY": "60", "DTQ_RETRY_MAX_DELAY": "60"})
    retried, dead = system.create(a_task("brief", payload={"fails": 9}), a_task("hopeless"))

    body = until(system, retried, ["retry", "next: move_when_due"])
    assert (2, 5, "RetryableError") == tuple(
        figures(body, "retry")[name] for name in ("attempt", "max_attempts", "error_class")
    )

    system.ended(dead)
    body = explained(system, dead)
    assert ["ended", "next: requeue"] == codes(body)
    assert "PermanentError" == figures(body, "ended")["error_class"]


def test_http_says_the_same(system: System) -> None:
    (task_id,) = system.create(a_task("echo"))
    api = system.api()

    answer = api.http.get(f"/api/v1/tasks/{task_id}/explanation")

    told = explained(system, task_id)
    assert 200 == answer.status_code
    assert {**answer.json(), "at": None} == {**told, "at": None}
    assert 404 == api.http.get(f"/api/v1/tasks/{'0' * 32}/explanation").status_code


def test_a_broker_that_is_away_ends_with_1(system: System) -> None:
    settings = {"DTQ_REDIS_URL": "redis://127.0.0.1:1/0"}

    done = system.command("explain", "0" * 32, settings=settings)

    assert (1, "") == (done.returncode, done.stdout)


def test_looking_while_tasks_run_disturbs_nothing(system: System) -> None:
    system.worker()
    tasks = system.create(*[a_task("brief", payload={"seconds": 0.05})] * 60)

    seen = [codes(explained(system, task_id)) for task_id in tasks[::20]]

    assert seen
    wait_until(lambda: system.count_ended(tasks) == len(tasks), within=PLENTY_S, what="all end")
    assert [[1]] * len(tasks) == [system.journal.starts(task_id) for task_id in tasks]
