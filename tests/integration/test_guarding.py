"""The API key, the audit stream and what the logs must not tell."""

import hashlib

from tests.judged.program import Program
from tests.judged.system import Api, System, a_gated_task
from tests.judged.waiting import wait_until

KEY = "a-key-of-ours"
DEMO = {"DTQ_TASK_MODULES": "dtq.demo"}


def audited(system: System) -> list[dict[str, str]]:
    return [fields for _, fields in system.redis.xrange(f"{system.prefix}:stream:audit")]


def submitted(api: Api, **fields: object) -> str:
    answer = api.http.post("/api/v1/tasks", json={"task_type": "echo_task", "payload": {}, **fields})
    assert 202 == answer.status_code, answer.text
    task_id: str = answer.json()["task_id"]
    return task_id


def test_only_the_key_cancels_and_the_audit_stream_says_who(system: System) -> None:
    api = system.api({**DEMO, "DTQ_API_KEY": KEY})
    task_id = submitted(api, delay_seconds=60)
    cancel = f"/api/v1/tasks/{task_id}/cancel"

    refused = api.http.post(cancel, headers={"X-API-Key": "another"})
    assert (401, "pending", []) == (refused.status_code, system.task(task_id).status, audited(system))
    accepted = api.http.post(cancel, headers={"X-API-Key": KEY, "X-Request-ID": "req-7"})

    assert (202, "cancelled") == (accepted.status_code, system.task(task_id).status)
    [entry] = audited(system)
    assert (f"api-key:{hashlib.sha256(KEY.encode()).hexdigest()[:8]}", "task.cancel", task_id, "req-7") == tuple(
        entry[name] for name in ("actor", "action", "task_id", "request_id")
    )


def test_a_cancellation_that_is_asked_for_is_audited_too(system: System) -> None:
    system.worker()
    api = system.api()
    [task_id] = system.create(a_gated_task("audit"))
    system.started(task_id)

    api.http.post(f"/api/v1/tasks/{task_id}/cancel")

    assert ["task.cancel_requested"] == [entry["action"] for entry in audited(system)]


def test_commands_are_audited_under_their_user(system: System) -> None:
    arguments = ["submit", "--type", "echo_task", "--payload", "{}", "--delay-seconds", "60"]
    task_id = system.command(*arguments, settings=DEMO).stdout.split()[0]

    done = system.command("cancel", task_id)

    assert 0 == done.returncode
    [entry] = audited(system)
    assert entry["actor"].startswith("cli:")


def test_an_open_api_that_can_be_reached_from_outside_says_so(system: System) -> None:
    arguments = ["api", "run", "--host", "0.0.0.0", "--port", "0"]  # noqa: S104 - that is what it is about
    program = Program("open-api", arguments, environment=system.environment(DEMO), folder=system.folder)
    system.programs.append(program)

    wait_until(lambda: "api_listens" in program.log, within=20, what="an API")

    assert "DTQ_API_KEY is not set" in program.log
    program.terminate()
    assert 0 == program.exit_code(within=20)


def test_neither_payload_nor_key_is_logged(system: System) -> None:
    loud = {**DEMO, "DTQ_LOG_LEVEL": "DEBUG", "DTQ_API_KEY": KEY}
    worker, api = system.worker(loud), system.api(loud)
    task_id = submitted(api, payload={"word": "payload-text"}, metadata={"note": "metadata-text"})
    system.ended(task_id)
    api.http.post(f"/api/v1/tasks/{task_id}/cancel", headers={"X-API-Key": KEY})

    logs = worker.log + api.log

    assert task_id in logs
    assert not [word for word in ("payload-text", "metadata-text", KEY) if word in logs]
