"""What commands refuse, and with which exit code."""

import asyncio
import io
import json
import sys

import pytest

from dtq.domain.errors import (
    BrokerUnavailable,
    DtqError,
    FieldProblem,
    InvalidTask,
    OutcomeUnknown,
    RecordUnreadable,
    StepStopped,
    UnknownTaskType,
)
from dtq.entrypoints.cli import main
from dtq.entrypoints.cli.exits import lines_of, report
from dtq.ports.backend import Backend
from tests.entrypoints.command_fixtures import backend, printed
from tests.entrypoints.commands import Printed, submit

__all__ = ["backend", "printed"]


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
    assert [] == list(asyncio.run(backend.broker.recent(queue=None, status=None, limit=1)).tasks)


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


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_an_error_for_programs_is_whole_in_any_encoding(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    error = InvalidTask(tuple(FieldProblem(f"payload.{number}", "\u00e9\U0001f600" * 50) for number in range(40)))
    stderr = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="backslashreplace")
    monkeypatch.setattr(sys, "stderr", stderr)

    assert 5 == report(error, as_json=True)

    told = json.loads(stderr.buffer.getvalue())
    assert [{"field": one.field, "problem": one.problem} for one in error.problems] == told["errors"]


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


def test_who_names_an_unknown_type_reads_which_ones_are_known(printed: Printed) -> None:
    assert 5 == submit("--type", "nope")

    assert printed()[1].endswith(
        "dtq: task_type: no handler named 'nope' is registered; known here: greet; DTQ_TASK_MODULES or --tasks names "
        "the modules that have handlers, dtq.demo for instance; `dtq workers` shows the types that workers know\n"
    )


def test_of_many_known_types_some_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    report(UnknownTaskType("nope"), as_json=False, task_types=[f"type-{number:02}" for number in range(30)])

    told = capsys.readouterr().err
    assert "known here: type-00, type-01," in told
    assert "type-11 and 18 others; DTQ" in told
    assert "type-12" not in told


def test_where_no_type_is_known_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    report(UnknownTaskType("nope"), as_json=False)

    assert "registered; none is known here; DTQ_TASK_MODULES" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (BrokerUnavailable("no"), "the broker is unavailable (no)"),
        (RecordUnreadable("no"), "no; trying again does not help: see `dtq doctor`"),
        (OutcomeUnknown("no"), "did not answer in time, so the request may or may not have been carried out (no)"),
        (StepStopped("no"), "stopped half-way, so the request may or may not have been carried out (no)"),
    ],
)
def test_what_the_broker_may_have_done_is_said(error: DtqError, words: str) -> None:
    (line,) = lines_of(error)

    assert words in line
