"""Judged item 9: bad input gets one clear answer, and nothing is written."""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from subprocess import CompletedProcess
from typing import Any

import httpx
import pytest

from tests.judged.bad_bodies import LIMIT_BYTES, Bad, bad_requests, nested, text_of
from tests.judged.footprint import dumps
from tests.judged.system import Api, System
from tests.servers import start_own

BAD = bad_requests()
BRIEF_BYTES = 8_000
"""No refusal grows with what it refuses."""

QUERIES = {
    "queue": "queue=UPPER",
    "queue with newline": "queue=default%0A",
    "status": "status=sleeping",
    "limit zero": "limit=0",
    "limit too large": "limit=501",
    "limit no number": "limit=many",
    "limit fraction": "limit=1.5",
}

ARGUMENTS: dict[str, tuple[int, str, tuple[str, ...]]] = {
    "no command": (2, "required", ()),
    "unknown command": (2, "invalid choice", ("destroy",)),
    "no type": (2, "--type", ("submit", "--payload", "{}")),
    "no payload": (2, "--payload", ("submit", "--type", "echo")),
    "priority no number": (2, "--priority", ("submit", "--type", "echo", "--payload", "{}", "--priority", "high")),
    "timeout fraction": (2, "--timeout-ms", ("submit", "--type", "echo", "--payload", "{}", "--timeout-ms", "1.5")),
    "unknown option": (2, "--surprise", ("submit", "--type", "echo", "--payload", "{}", "--surprise", "1")),
    "wait below zero": (2, "--wait", ("submit", "--type", "echo", "--payload", "{}", "--wait=-1")),
    "list status": (2, "status", ("list", "--status", "sleeping")),
    "list limit": (2, "limit", ("list", "--limit", "0")),
    "list queue": (2, "queue", ("list", "--queue", "UPPER")),
    "unknown type": (5, "task_type", ("submit", "--type", "nobody", "--payload", "{}")),
    "truncated": (5, "payload", ("submit", "--type", "echo", "--payload", '{"a": ')),
    "array": (5, "payload", ("submit", "--type", "echo", "--payload", "[]")),
    "NaN": (5, "payload", ("submit", "--type", "echo", "--payload", '{"a": NaN}')),
    "surrogate": (5, "payload", ("submit", "--type", "echo", "--payload", '{"a": "\\ud800"}')),
    "too deep": (5, "payload", ("submit", "--type", "echo", "--payload", nested(65))),
    "queue": (5, "queue", ("submit", "--type", "echo", "--payload", "{}", "--queue", "UPPER")),
    "key": (5, "idempotency_key", ("submit", "--type", "echo", "--payload", "{}", "--idempotency-key", "a b")),
    "priority": (5, "priority", ("submit", "--type", "echo", "--payload", "{}", "--priority", "10")),
    "attempts": (5, "max_attempts", ("submit", "--type", "echo", "--payload", "{}", "--max-attempts", "0")),
    "timeout": (5, "timeout_ms", ("submit", "--type", "echo", "--payload", "{}", "--timeout-ms", "0")),
    "delay": (5, "delay_seconds", ("submit", "--type", "echo", "--payload", "{}", "--delay-seconds", "-1")),
    "no number": (2, "--delay-seconds", ("submit", "--type", "echo", "--payload", "{}", "--delay-seconds", "nan")),
    "metadata": (5, "metadata", ("submit", "--type", "echo", "--payload", "{}", "--metadata", "[]")),
}


class Untouched:
    """The deployment's keys and the server's count of writes as they are now, to be compared with later."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._before = self._state()

    def _state(self) -> tuple[dict[str, object], int]:
        writes = int(self._system.redis.info("persistence")["rdb_changes_since_last_save"])
        return dumps(self._system, match="*"), writes

    def check(self) -> None:
        """See that nothing was written, not even for a moment."""
        assert self._before == self._state()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A deployment without a worker, on a server that nobody else writes to: nothing writes by itself."""
    with start_own() as server, System(server, folder=tmp_path_factory.mktemp("bad-input")) as system:
        yield system


@pytest.fixture(scope="module")
def api(alone: System) -> Api:
    return alone.api()


def see_refused(answer: httpx.Response, *, status: int, code: str, names: str | None) -> None:
    """See that an answer is one clear problem document."""
    assert "application/problem+json" == answer.headers["content-type"].partition(";")[0]
    problem: dict[str, Any] = answer.json()
    assert (status, status, code) == (answer.status_code, problem["status"], problem["code"]), problem
    assert len(answer.content) < BRIEF_BYTES
    assert problem["detail"]
    assert "Traceback" not in answer.text
    if names is not None:
        assert names in [fault["field"] for fault in problem["errors"]], problem


@pytest.mark.parametrize("name", BAD)
def test_a_bad_submission_is_refused_and_writes_nothing(alone: System, api: Api, name: str) -> None:
    bad: Bad = BAD[name]
    untouched = Untouched(alone)

    answer = api.http.post("/api/v1/tasks", content=bad.body, headers=bad.headers)

    see_refused(answer, status=bad.status, code=bad.code, names=bad.names)
    untouched.check()


def test_a_body_without_a_length_is_cut_off_at_the_limit(alone: System, api: Api) -> None:
    untouched = Untouched(alone)

    endless = (b" " * 65_536 for _ in range(64))
    answer = api.http.post("/api/v1/tasks", content=endless, headers={"Content-Type": "application/json"})

    see_refused(answer, status=413, code="PAYLOAD_TOO_LARGE", names=None)
    untouched.check()


@pytest.mark.parametrize("name", QUERIES)
def test_a_bad_query_is_refused(alone: System, api: Api, name: str) -> None:
    untouched = Untouched(alone)

    answer = api.http.get(f"/api/v1/tasks?{QUERIES[name]}")

    see_refused(answer, status=400, code="INVALID_REQUEST", names=QUERIES[name].partition("=")[0])
    untouched.check()


@pytest.fixture(scope="module")
def refusals(alone: System) -> dict[str, CompletedProcess[str]]:
    """All bad commands, run side by side to save time; together they have written nothing."""
    untouched = Untouched(alone)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = pool.map(lambda case: alone.command(*case[2]), ARGUMENTS.values())
        found = dict(zip(ARGUMENTS, done, strict=True))
    untouched.check()
    return found


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_bad_command_is_refused_and_writes_nothing(refusals: dict[str, CompletedProcess[str]], name: str) -> None:
    code, names, _ = ARGUMENTS[name]

    done = refusals[name]

    assert (code, "") == (done.returncode, done.stdout), done.stderr
    assert names in done.stderr
    assert "Traceback" not in done.stderr
    if code == 5:
        assert 1 == len(done.stderr.splitlines()), done.stderr


@pytest.mark.parametrize("size", [LIMIT_BYTES + 1, 4 * LIMIT_BYTES])
def test_a_payload_that_is_too_large_is_refused_on_the_command_line_too(alone: System, size: int) -> None:
    untouched = Untouched(alone)

    done = alone.command("submit", "--type", "echo", "--payload", "-", "--json", text=text_of(size))

    assert (5, "") == (done.returncode, done.stdout)
    assert "PAYLOAD_TOO_LARGE" == json.loads(done.stderr)["code"]
    untouched.check()
