"""Judged 9: bad input to API and command line is answered clearly and leaves nothing in Redis."""

import pytest

from tests.entrypoints.test_http_refusals import BODIES
from tests.integration.deployment import Deployment

ARGUMENTS = {
    "truncated": ["--payload", '{"a": 1'],
    "array": ["--payload", "[]"],
    "NaN": ["--payload", '{"a": NaN}'],
    "surrogate": ["--payload", '{"a": "\\ud800"}'],
    "too deep": ["--payload", '{"a": ' + "[" * 65 + "]" * 65 + "}"],
    "unknown type": ["--type", "no_such_task"],
    "queue": ["--queue", "Mail\n"],
    "key": ["--idempotency-key", ""],
    "attempts": ["--max-attempts", "0"],
    "priority": ["--priority", "10"],
    "priority that is no number": ["--priority", "high"],
    "timeout": ["--timeout-ms", "3600001"],
    "delay": ["--delay-seconds", "nan"],
    "metadata": ["--metadata", '{"ttl_seconds": -1}'],
}


def test_bad_bodies_leave_nothing_in_redis(deployment: Deployment) -> None:
    api = deployment.api()
    before = deployment.dump()
    wrong_kind = {"Content-Type": "text/plain"}

    answers = [
        api.client.post("/api/v1/tasks", content=body, headers={"Content-Type": "application/json"})
        for body in (body.replace(b"greet", b"echo_task") for body in BODIES.values())
    ]
    too_large = api.client.post("/api/v1/tasks", json={"task_type": "echo_task", "payload": {"a": "x" * 262_144}})
    good = b'{"task_type": "echo_task", "payload": {}}'
    not_json = api.client.post("/api/v1/tasks", content=good, headers=wrong_kind)

    assert {400} == {answer.status_code for answer in [*answers, not_json]}
    assert 413 == too_large.status_code
    for answer in [*answers, not_json, too_large]:
        assert "application/problem+json" == answer.headers["content-type"]
        assert answer.json()["detail"]
    assert before == deployment.dump()


@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=ARGUMENTS.keys())
def test_bad_arguments_leave_nothing_in_redis(deployment: Deployment, arguments: list[str]) -> None:
    before = deployment.dump()

    done = deployment.cli("submit", "--type", "echo_task", "--payload", "{}", *arguments)

    assert done.returncode in {2, 5}
    assert "" == done.stdout
    assert "Traceback" not in done.stderr
    assert "dtq" in done.stderr
    assert before == deployment.dump()


def test_a_payload_that_is_too_large_for_an_argument_can_be_piped_and_is_rejected(deployment: Deployment) -> None:
    before = deployment.dump()

    done = deployment.cli("submit", "--type", "echo_task", "--payload", "-", given='{"a": "' + "x" * 262_144 + '"}')

    assert 5 == done.returncode
    assert "at most 262144 are allowed" in done.stderr
    assert before == deployment.dump()
