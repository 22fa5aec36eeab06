"""Commands in one process with their test, on a backend that they share through a third party's URL."""

import asyncio
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dtq.domain import errors
from dtq.domain.outcome import Outcome, Succeeded, classify
from dtq.entrypoints.cli import main
from dtq.entrypoints.cli.exits import EXIT_OF
from dtq.ports.backend import Backend, BackendOptions
from tests.entrypoints import third_party
from tests.entrypoints.driver import finish_with, start_next

GREET = """
from dtq import task
print("this module prints")

@task("greet")
def greet(payload, ctx):
    return payload
"""

Printed = Callable[[], tuple[str, str]]


@pytest.fixture(autouse=True)
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Backend:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    third_party.install(tmp_path)
    (tmp_path / "greetings.py").write_text(GREET)
    sys.modules.pop("greetings", None)
    url = f"third://{id(request.node)}"
    monkeypatch.setenv("DTQ_REDIS_URL", url)
    monkeypatch.setenv("DTQ_TASK_MODULES", "greetings")
    return third_party.connect(url, options=BackendOptions())


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    def read() -> tuple[str, str]:
        captured = capsys.readouterr()
        return captured.out, captured.err

    return read


def submit(*arguments: str, payload: str = '{"a": 1}') -> int:
    return main(["submit", "--type", "greet", "--payload", payload, *arguments])


def submitted(printed: Printed, *arguments: str) -> str:
    assert 0 == submit("--json", *arguments)
    task_id: str = json.loads(printed()[0])["task_id"]
    return task_id


def end(backend: Backend, outcome: Outcome) -> None:
    async def both() -> None:
        await finish_with(backend, await start_next(backend), outcome)

    asyncio.run(both())


def document(printed: Printed) -> Any:
    return json.loads(printed()[0])


def test_submit_prints_id_and_status(printed: Printed) -> None:
    assert 0 == submit()

    task_id, status = printed()[0].split()
    assert (32, "queued") == (len(task_id), status)


def test_submit_prints_one_json_document(printed: Printed) -> None:
    assert 0 == submit("--json", "--delay-seconds", "5")

    out, err = printed()
    assert "pending" == json.loads(out)["status"]
    assert "this module prints\n" == err


def test_submit_passes_every_option_on(printed: Printed) -> None:
    options = [
        "--queue",
        "mail",
        "--idempotency-key",
        "k",
        "--max-attempts",
        "2",
        "--priority",
        "9",
        "--timeout-ms",
        "7",
    ]
    task_id = submitted(printed, *options, "--metadata", '{"ttl_seconds": 60}')

    assert 0 == main(["get", task_id, "--json"])

    shown = {"queue": "mail", "idempotency_key": "k", "max_attempts": 2, "priority": 9, "timeout_ms": 7}
    body = document(printed)
    assert {**shown, "metadata": {"ttl_seconds": 60}} == {name: body[name] for name in [*shown, "metadata"]}


def test_wait_prints_the_task_with_its_result(backend: Backend, printed: Printed) -> None:
    submitted(printed, "--idempotency-key", "k")
    end(backend, Succeeded(result='{"text": "hi"}'))

    assert 0 == submit("--idempotency-key", "k", "--wait", "--json")

    body = document(printed)
    assert ("succeeded", {"text": "hi"}, True) == (body["status"], body["result"], body["duplicate"])


def test_wait_tells_failure_by_its_exit_code(backend: Backend, printed: Printed) -> None:
    submitted(printed, "--idempotency-key", "k")
    end(backend, classify(ValueError("why"), retryable=()))

    assert 8 == submit("--idempotency-key", "k", "--wait")

    out, _ = printed()
    assert "dead_lettered" in out
    assert "ValueError" in out


def test_wait_tells_at_its_limit_that_the_task_still_runs(printed: Printed) -> None:
    assert 9 == submit("--wait", "0", "--json")

    assert "queued" == document(printed)["status"]


def test_a_duplicate_is_told_and_done(backend: Backend, printed: Printed) -> None:
    task_id = submitted(printed, "--idempotency-key", "k")
    end(backend, Succeeded(result="1"))

    assert 0 == submit("--idempotency-key", "k")

    assert f"{task_id} succeeded (duplicate)\n" == printed()[0]


def test_a_living_key_is_a_conflict(printed: Printed) -> None:
    task_id = submitted(printed, "--idempotency-key", "k")

    assert 4 == submit("--idempotency-key", "k", "--json")

    problem = json.loads(printed()[1].splitlines()[-1])
    assert ("IDEMPOTENCY_IN_PROGRESS", task_id) == (problem["code"], problem["task_id"])


def test_get_shows_a_table(printed: Printed) -> None:
    task_id = submitted(printed)

    assert 0 == main(["get", task_id])

    out, _ = printed()
    rows = dict(line.split(maxsplit=1) for line in out.splitlines() if " " in line.strip())
    assert (task_id, "queued", '{"a": 1}') == tuple(rows[name].strip() for name in ("task_id", "status", "payload"))


def test_list_shows_a_table(printed: Printed) -> None:
    ids = [submitted(printed) for _ in range(3)]

    assert 0 == main(["list", "--limit", "2"])

    lines = printed()[0].splitlines()
    assert [ids[2], ids[1]] == [line.split()[0] for line in lines[1:]]


def test_list_can_be_narrowed(printed: Printed) -> None:
    submitted(printed)
    wanted = submitted(printed, "--queue", "mail", "--delay-seconds", "9")

    assert 0 == main(["list", "--queue", "mail", "--status", "pending", "--json"])

    assert [wanted] == [task["task_id"] for task in document(printed)["tasks"]]


def test_cancel_says_what_it_did_once(printed: Printed) -> None:
    task_id = submitted(printed)

    assert 0 == main(["cancel", task_id])
    assert f"{task_id} cancelled\n" == printed()[0]
    assert 7 == main(["cancel", task_id])


def test_cancel_is_audited_with_its_user(backend: Backend, printed: Printed) -> None:
    task_id = submitted(printed)

    main(["cancel", task_id])

    [entry] = asyncio.run(_audit(backend))
    assert ("task.cancel", task_id) == (entry.action, entry.task_id)
    assert entry.actor.startswith("cli:")
    assert "@" in entry.actor


def test_a_running_task_is_asked_to_stop(backend: Backend, printed: Printed) -> None:
    task_id = submitted(printed)
    asyncio.run(_started(backend))

    assert 4 == main(["cancel", task_id])

    assert "cancellation is requested" in printed()[1]


@pytest.mark.parametrize("command", ["get", "cancel"])
@pytest.mark.parametrize("task_id", ["0" * 32, "no-id", "\x1b[31m"])
def test_an_unknown_task_is_not_found(command: str, task_id: str, printed: Printed) -> None:
    assert 3 == main([command, task_id])

    assert printed()[1].rstrip("\n").isprintable()


BAD = {
    "truncated": ["--payload", '{"a": 1'],
    "array": ["--payload", "[]"],
    "NaN": ["--payload", '{"a": NaN}'],
    "surrogate": ["--payload", '{"a": "\\ud800"}'],
    "bytes that are no text": ["--payload", '{"a": "\udcff"}'],
    "too deep": ["--payload", '{"a": ' + "[" * 65 + "]" * 65 + "}"],
    "far too deep": ["--payload", '{"a": ' + "[" * 50_000 + "]" * 50_000 + "}"],
    "too large": ["--payload", '{"a": "' + "x" * 262_144 + '"}'],
    "type": ["--type", "no such type"],
    "unknown type": ["--type", "other"],
    "queue": ["--queue", "Mail"],
    "empty queue": ["--queue", ""],
    "key": ["--idempotency-key", "a b"],
    "empty key": ["--idempotency-key", ""],
    "attempts": ["--max-attempts", "11"],
    "priority": ["--priority", "10"],
    "timeout": ["--timeout-ms", "0"],
    "delay": ["--delay-seconds", "-1"],
    "delay NaN": ["--delay-seconds", "nan"],
    "delay inf": ["--delay-seconds", "inf"],
    "metadata": ["--metadata", "[1]"],
    "metadata too large": ["--metadata", '{"a": "' + "m" * 4096 + '"}'],
}


@pytest.mark.parametrize("arguments", BAD.values(), ids=BAD.keys())
def test_bad_input_is_rejected_and_leaves_nothing(arguments: list[str], backend: Backend, printed: Printed) -> None:
    assert 5 == submit(*arguments)

    out, err = printed()
    assert "" == out
    assert "dtq: " in err
    assert all(line.isprintable() for line in err.splitlines())
    assert [] == list(asyncio.run(backend.broker.recent(queue=None, status=None, limit=1)))


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["submit"],
        ["submit", "--type", "greet"],
        ["submit", "--type", "greet", "--payload", "{}", "--priority", "high"],
        ["submit", "--type", "greet", "--payload", "{}", "--wait", "-1"],
        ["submit", "--type", "greet", "--payload", "{}", "--wait", "nan"],
        ["submit", "--type", "greet", "--payload", "{}", "--prio", "1"],
        ["get"],
        ["nonsense"],
    ],
)
def test_wrong_usage_is_two(arguments: list[str], printed: Printed) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)

    assert 2 == ended.value.code
    assert "usage: dtq" in printed()[1]


@pytest.mark.parametrize(
    "arguments", [["list", "--limit", "0"], ["list", "--status", "lost"], ["list", "--queue", "A"]]
)
def test_a_bad_query_is_two(arguments: list[str]) -> None:
    assert 2 == main(arguments)


def test_every_fault_of_the_settings_is_printed(monkeypatch: pytest.MonkeyPatch, printed: Printed) -> None:
    monkeypatch.setenv("DTQ_API_PORT", "none")
    monkeypatch.setenv("DTQ_RETRY_JITTER", "2")

    assert 2 == main(["list"])

    _, err = printed()
    assert ["DTQ_API_PORT", "DTQ_RETRY_JITTER"] == [
        line.removeprefix("dtq: ").split("=")[0] for line in err.splitlines()
    ]


def test_a_task_module_that_is_missing_is_two(printed: Printed) -> None:
    assert 2 == submit("--tasks", "nowhere_to_be_found")

    assert "nowhere_to_be_found" in printed()[1]


@pytest.mark.parametrize("command", [["submit", "--type", "a", "--payload", "{}"], ["worker", "run"], ["api", "run"]])
def test_memory_is_not_shared_between_processes(
    command: list[str], monkeypatch: pytest.MonkeyPatch, printed: Printed
) -> None:
    monkeypatch.setenv("DTQ_REDIS_URL", "memory://")

    assert 2 == main(command)

    assert "share no memory" in printed()[1]


def test_a_worker_without_any_task_is_two(monkeypatch: pytest.MonkeyPatch, printed: Printed) -> None:
    monkeypatch.setenv("DTQ_TASK_MODULES", "")

    assert 2 == main(["worker", "run"])

    assert "DTQ_TASK_MODULES or --tasks" in printed()[1]


def test_the_payload_can_come_from_stdin(monkeypatch: pytest.MonkeyPatch, printed: Printed) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"from": "stdin"}'))

    task_id = submitted(printed, "--payload", "-")

    assert 0 == main(["get", task_id, "--json"])
    assert {"from": "stdin"} == document(printed)["payload"]


def test_a_strangers_text_cannot_paint_the_terminal(printed: Printed) -> None:
    task_id = submitted(printed, "--payload", '{"a": "[red]x[/red] \x9b31m"}')

    assert 0 == main(["get", task_id])

    out, _ = printed()
    assert "[red]x[/red]" in out
    assert "\x9b" not in out


def test_help_documents_the_exit_codes(printed: Printed) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])

    out, _ = printed()
    assert all(f" {code} " in out for code in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 70, 75, 130))


def test_every_code_that_services_raise_has_an_exit() -> None:
    codes = {
        kind.code for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.DtqError)
    }

    assert codes - {"INTERNAL", "UNAUTHORIZED"} <= set(EXIT_OF)


async def _audit(backend: Backend) -> Any:
    return await backend.audit.recent(limit=10)


async def _started(backend: Backend) -> None:
    await start_next(backend)
