"""The API key, the audit stream and what the logs must not tell."""

import hashlib
from typing import cast

from tests.integration.deployment import Deployment, Diary
from tests.integration.programs import until

KEY = "a-key-of-ours"


def audited(deployment: Deployment) -> list[dict[str, str]]:
    found = deployment.redis.xrange(deployment.key("stream", "audit"))
    return [fields for _, fields in cast("list[tuple[str, dict[str, str]]]", found)]


def test_only_the_key_cancels_and_the_audit_stream_says_who(deployment: Deployment) -> None:
    api = deployment.api(DTQ_API_KEY=KEY)
    task_id = api.submit("echo_task", delay_seconds=60)
    cancel = f"/api/v1/tasks/{task_id}/cancel"

    refused = api.client.post(cancel, headers={"X-API-Key": "another"})
    assert (401, "pending", []) == (refused.status_code, deployment.status(task_id), audited(deployment))
    accepted = api.client.post(cancel, headers={"X-API-Key": KEY, "X-Request-ID": "req-7"})

    assert (202, "cancelled") == (accepted.status_code, deployment.status(task_id))
    [entry] = audited(deployment)
    assert (f"api-key:{hashlib.sha256(KEY.encode()).hexdigest()[:8]}", "task.cancel", task_id, "req-7") == tuple(
        entry[name] for name in ("actor", "action", "task_id", "request_id")
    )


def test_a_cancellation_that_is_asked_for_is_audited_too(deployment: Deployment, diary: Diary) -> None:
    deployment.worker()
    api = deployment.api()
    task_id = api.submit("hold", {"diary": str(diary.path), "until": "/nowhere/at/all"})
    until(lambda: diary.of(task_id))

    api.client.post(f"/api/v1/tasks/{task_id}/cancel")

    assert ["task.cancel_requested"] == [entry["action"] for entry in audited(deployment)]


def test_commands_are_audited_under_their_user(deployment: Deployment) -> None:
    submitted = deployment.cli("submit", "--type", "echo_task", "--payload", "{}", "--delay-seconds", "60")
    task_id = submitted.stdout.split()[0]

    done = deployment.cli("cancel", task_id)

    assert 0 == done.returncode
    [entry] = audited(deployment)
    assert entry["actor"].startswith("cli:")


def test_an_open_api_that_can_be_reached_from_outside_says_so(deployment: Deployment) -> None:
    program = deployment.start("api", "run", "--host", "0.0.0.0", "--port", "0")  # noqa: S104 - that is what it is about

    until(lambda: program.logged("api_listens"))

    [line] = program.logged("open_to_everybody")
    assert "DTQ_API_KEY is not set" in line["reason"]
    assert 0 == program.end()


def test_neither_payload_nor_key_nor_password_is_logged(deployment: Deployment) -> None:
    worker = deployment.worker(DTQ_LOG_LEVEL="DEBUG")
    api = deployment.api(DTQ_LOG_LEVEL="DEBUG", DTQ_API_KEY=KEY)
    task_id = api.submit("echo_task", {"word": "payload-text"}, metadata={"note": "metadata-text"})
    deployment.wait_for_end(task_id)
    api.client.post(f"/api/v1/tasks/{task_id}/cancel", headers={"X-API-Key": KEY})

    logs = worker.output + api.program.output

    assert task_id in logs
    assert not [word for word in ("payload-text", "metadata-text", KEY) if word in logs]
