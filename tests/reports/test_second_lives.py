"""Keys, dead letters and new lives: a key refuses nothing for ever, and a new life has nothing of the old one."""

from collections.abc import Mapping

import httpx
import pytest

from dtq.domain.status import TaskStatus
from tests.judged.system import Api, System
from tests.judged.waiting import wait_until
from tests.reports.scene import MODULES, sized, submission, submitted

KEY_TTL_S = 2
ROUNDS = sized(20, 40)
OLD_TRACES = ("finished_at", "duration_ms", "error_class", "error_message", "retryable", "result")


def resubmitted(api: Api, key: str) -> httpx.Response:
    """The answer to another submission under a key."""
    return api.http.post("/api/v1/tasks", json=submission("echo", idempotency_key=key))


def see_it_replayed(api: Api, key: str, task_id: str, status: TaskStatus) -> None:
    """See that the key answers with its task, which has ended so."""
    answer = resubmitted(api, key)
    assert (httpx.codes.OK, True) == (answer.status_code, answer.json()["duplicate"]), answer.text
    assert (task_id, status) == (answer.json()["task_id"], answer.json()["status"])


def mend(system: System, gate: str, *, and_open: bool = True) -> None:
    """Put right what a mended task needs, and let it pass."""
    for name in (f"{gate}-mended", f"{gate}-open") if and_open else (f"{gate}-mended",):
        system.journal.path.with_name(f"gate-{name}").touch()


def test_a_key_answers_with_its_task_after_each_end_and_refuses_while_it_lives(system: System) -> None:
    """R29."""
    api, worker = system.api(MODULES), system.worker(MODULES)
    done = submitted(api, "echo", idempotency_key="done")
    dead = submitted(api, "mended", {"gate": "dead"}, max_attempts=1, idempotency_key="dead")
    discarded = submitted(api, "hopeless", idempotency_key="discarded")
    purged = submitted(api, "hopeless", idempotency_key="purged")
    stopped = submitted(api, "gated", {"gate": "never"}, timeout_ms=600_000, idempotency_key="stopped")
    for task_id in (done, dead, discarded, purged):
        system.ended(task_id)
    system.started(stopped)
    assert httpx.codes.CONFLICT == resubmitted(api, "stopped").status_code
    assert httpx.codes.CONFLICT == api.http.post(f"/api/v1/tasks/{stopped}/cancel").status_code
    system.ended(stopped)
    assert 200 == api.http.post("/api/v1/queue/default/pause").status_code
    queued = submitted(api, "echo", idempotency_key="queued")
    delayed = submitted(api, "echo", delay_seconds=600, idempotency_key="delayed")
    expired = submitted(api, "echo", metadata={"ttl_seconds": 1}, idempotency_key="expired")
    for key, task_id in (("queued", queued), ("delayed", delayed)):
        assert httpx.codes.CONFLICT == resubmitted(api, key).status_code
        assert httpx.codes.ACCEPTED == api.http.post(f"/api/v1/tasks/{task_id}/cancel").status_code
    assert httpx.codes.ACCEPTED == api.http.post(f"/api/v1/dlq/{dead}/requeue").status_code
    assert httpx.codes.CONFLICT == resubmitted(api, "dead").status_code
    assert httpx.codes.OK == api.http.post(f"/api/v1/dlq/{discarded}/discard").status_code
    assert 1 == api.http.post("/api/v1/dlq/purge").json()["purged"]
    mend(system, "dead")
    moment = system.redis.time()[0]
    wait_until(lambda: system.redis.time()[0] >= moment + 2, within=10, what="its time to live has passed")
    assert 200 == api.http.post("/api/v1/queue/default/resume").status_code
    system.ended(dead)
    system.ended(expired)

    for key, task_id in (("done", done), ("dead", dead)):
        see_it_replayed(api, key, task_id, TaskStatus.SUCCEEDED)
    for key, task_id in (("discarded", discarded), ("purged", purged)):
        see_it_replayed(api, key, task_id, TaskStatus.DEAD_LETTERED)
    for key, task_id in (("stopped", stopped), ("queued", queued), ("delayed", delayed)):
        see_it_replayed(api, key, task_id, TaskStatus.CANCELLED)
    see_it_replayed(api, "expired", expired, TaskStatus.EXPIRED)
    assert worker.alive()


def test_a_key_is_new_once_its_time_is_over_whatever_became_of_its_task(system: System) -> None:
    """R29: without dead letters too."""
    settings = MODULES | {"DTQ_IDEM_TTL_S": str(KEY_TTL_S), "DTQ_DLQ_ENABLED": "false"}
    api = system.api(settings)
    system.worker(settings)
    first = {
        "failed": submitted(api, "hopeless", idempotency_key="failed"),
        "done": submitted(api, "echo", idempotency_key="done"),
    }
    assert TaskStatus.FAILED is system.ended(first["failed"]).status
    see_it_replayed(api, "failed", first["failed"], TaskStatus.FAILED)

    def new_ones() -> dict[str, int]:
        return {key: resubmitted(api, key).status_code for key in first}

    wait_until(lambda: httpx.codes.ACCEPTED in new_ones().values(), within=10 * KEY_TTL_S, what="the keys are free")


@pytest.mark.parametrize("max_attempts", [1, 3])
def test_a_requeued_task_has_its_whole_budget_again(system: System, max_attempts: int) -> None:
    """R31: after errors, and after crashes."""
    api = system.api(MODULES)
    system.worker(MODULES)
    failed = submitted(api, "brief", {"fails": max_attempts}, max_attempts=max_attempts)
    assert (TaskStatus.DEAD_LETTERED, max_attempts) == (
        system.ended(failed, within=40).status,
        system.task(failed).attempt,
    )

    for life in (2, 3):
        assert httpx.codes.ACCEPTED == api.http.post(f"/api/v1/dlq/{failed}/requeue").status_code
        ended = system.ended(failed, within=40)
        assert (TaskStatus.DEAD_LETTERED, max_attempts) == (ended.status, ended.attempt)
        assert [*range(1, max_attempts + 1)] * life == system.journal.starts(failed)


@pytest.mark.timeout(120)
def test_a_task_that_was_given_up_for_its_crashes_is_run_again_when_it_is_requeued(system: System) -> None:
    """R31: a worker dies with the task for each attempt, and once more after the cause is mended no count is left."""
    api = system.api(MODULES)
    task_id = submitted(api, "gated", {"gate": "crash"}, max_attempts=1, timeout_ms=600_000)
    victim = system.worker(MODULES)
    system.started(task_id)
    victim.kill()
    system.worker(MODULES)
    ended = system.ended(task_id, within=40)
    assert (TaskStatus.DEAD_LETTERED, 1) == (ended.status, ended.attempt)

    system.open_gate("crash")
    assert httpx.codes.ACCEPTED == api.http.post(f"/api/v1/dlq/{task_id}/requeue").status_code

    assert (TaskStatus.SUCCEEDED, 1) == (system.ended(task_id).status, system.task(task_id).attempt)
    shown = api.http.get(f"/api/v1/tasks/{task_id}").json()
    assert 1 == len(shown["metadata"]["previous_attempts"])


def test_many_lives_break_no_limit(system: System) -> None:
    """R31: what is kept of earlier attempts has a bound, and the task goes on all the same."""
    api = system.api(MODULES)
    system.worker(MODULES)
    task_id = submitted(api, "mended", {"gate": "lives"}, max_attempts=1, metadata={"note": "n" * 3500})
    for _ in range(ROUNDS):
        assert TaskStatus.DEAD_LETTERED is system.ended(task_id).status
        assert httpx.codes.ACCEPTED == api.http.post(f"/api/v1/dlq/{task_id}/requeue").status_code
    system.ended(task_id)
    mend(system, "lives")
    assert httpx.codes.ACCEPTED == api.http.post(f"/api/v1/dlq/{task_id}/requeue").status_code

    assert TaskStatus.SUCCEEDED is system.ended(task_id).status
    metadata: Mapping[str, object] = api.http.get(f"/api/v1/tasks/{task_id}").json()["metadata"]
    assert "n" * 3500 == metadata["note"]
    assert [1] * (ROUNDS + 2) == system.journal.starts(task_id)


def test_a_new_life_shows_nothing_of_the_end_of_the_old_one(system: System) -> None:
    """S12."""
    api = system.api(MODULES)
    system.worker(MODULES)
    task_id = submitted(api, "mended", {"gate": "new"}, max_attempts=1)
    system.ended(task_id)
    before = api.http.get(f"/api/v1/tasks/{task_id}").json()

    mend(system, "new", and_open=False)
    assert httpx.codes.OK == api.http.post("/api/v1/queue/default/pause").status_code
    assert httpx.codes.ACCEPTED == api.http.post(f"/api/v1/dlq/{task_id}/requeue").status_code
    queued = api.http.get(f"/api/v1/tasks/{task_id}").json()
    assert httpx.codes.OK == api.http.post("/api/v1/queue/default/resume").status_code
    wait_until(lambda: len(system.journal.starts(task_id)) == 2, within=20, what="it runs again")
    wait_until(lambda: system.task(task_id).status is TaskStatus.RUNNING, within=20, what="it is seen to run")
    running = api.http.get(f"/api/v1/tasks/{task_id}").json()
    mend(system, "new")

    assert TaskStatus.SUCCEEDED is system.ended(task_id).status
    assert "PermanentError" == before["error_class"]
    assert ["queued", "running"] == [shown["status"] for shown in (queued, running)]
    for shown in (queued, running):
        assert dict.fromkeys(OLD_TRACES) == {name: shown.get(name) for name in OLD_TRACES}
    assert running["started_at"] > before["started_at"]
