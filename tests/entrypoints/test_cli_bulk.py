"""Files of tasks: each line has an answer of its own, and a file can be submitted again."""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import pytest

from dtq.application.tasks import TaskService
from dtq.domain.errors import OutcomeUnknown, RecordUnreadable
from dtq.domain.outcome import Succeeded
from dtq.entrypoints.cli import main
from dtq.ports.backend import Backend
from tests.entrypoints.command_fixtures import backend, printed
from tests.entrypoints.commands import Printed, document, end

__all__ = ["backend", "printed"]


def a_line(**fields: object) -> str:
    return json.dumps({"task_type": "greet", "payload": {}, **fields})


def written(*lines: str, name: str = "tasks.jsonl") -> str:
    Path(name).write_text("".join(f"{line}\n" for line in lines))
    return name


def _pipe(text: str) -> IO[str]:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as pipe:
        pipe.write(text)
    return os.fdopen(reading)


def _file(text: str) -> IO[str]:
    path = Path("stdin")
    path.write_text(text)
    return path.open()


def results(printed: Printed) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What was said of each line, and the sum."""
    out, err = printed()
    return [json.loads(line) for line in out.splitlines()], json.loads(err.splitlines()[-1])


def test_every_line_becomes_a_task_with_what_it_says(printed: Printed) -> None:
    file = written(a_line(payload={"n": 1}, queue="mail", priority=9), a_line(payload={"n": 2}))

    assert 0 == main(["submit", "--file", file])

    assert "2 submitted, 0 already there, 0 rejected\n" == printed()[0]
    main(["list", "--json"])
    found = {(task["queue"], task["priority"], task["status"]) for task in document(printed)["tasks"]}
    assert {("mail", 9, "queued"), ("default", 5, "queued")} == found


def test_payload_text_is_kept_as_it_was_written(printed: Printed) -> None:
    text = '{"n": 12345678901234567890.10, "a": []}'
    file = written('{"payload": ' + text + ', "task_type": "greet"}')

    assert 0 == main(["submit", "--file", file, "--json"])

    [line], _ = results(printed)
    main(["get", line["task_id"]])
    assert text in printed()[0]


def test_bad_lines_are_told_by_their_numbers_and_good_ones_go_on(printed: Printed) -> None:
    bad = ["no json", "[]", a_line(payload=[1]), a_line(prio=3, priority=10), a_line(task_type="other")]
    file = written(a_line(), "", *bad, a_line())

    assert 5 == main(["submit", "--file", file])

    out, err = printed()
    assert "2 submitted, 0 already there, 5 rejected\n" == out
    told = [line.split(": ")[1:3] for line in err.splitlines() if line.startswith("dtq: line")]
    fields = {3: ["body"], 4: ["body"], 5: ["payload"], 6: ["prio", "priority"], 7: ["task_type"]}
    assert [[f"line {number}", field] for number, names in fields.items() for field in names] == told


def test_programs_get_one_document_a_line_in_order(printed: Printed) -> None:
    file = written(a_line(idempotency_key="a"), a_line(payload=1), a_line(idempotency_key="a"))

    assert 5 == main(["submit", "--file", file, "--json"])

    lines, total = results(printed)
    first, second, third = lines
    assert {"line": 1, "task_id": first["task_id"], "status": "queued"} == first
    assert (2, "INVALID_TASK", "payload") == (second["line"], second["code"], second["errors"][0]["field"])
    assert {"line": 3, "task_id": first["task_id"], "status": "queued", "duplicate": True} == third
    assert {"submitted": 1, "duplicates": 1, "rejected": 1, "unknown": 0, "stopped_at": None} == total


def test_the_same_file_again_submits_nothing_twice(backend: Backend, printed: Printed) -> None:
    file = written(*[a_line(idempotency_key=f"import-{number}") for number in range(3)])
    main(["submit", "--file", file])
    end(backend, Succeeded(result="1"))
    printed()

    assert 0 == main(["submit", "--file", file, "--json"])

    lines, total = results(printed)
    assert (0, 3) == (total["submitted"], total["duplicates"])
    assert ["queued", "queued", "succeeded"] == sorted(line["status"] for line in lines)


def test_options_fill_in_what_a_line_leaves_out(printed: Printed) -> None:
    file = written('{"payload": {}}', a_line(queue="audio", priority=None))

    assert 0 == main(["submit", "--file", file, "--type", "greet", "--queue", "mail", "--priority", "7"])

    printed()
    main(["list", "--json"])
    assert {("mail", 7), ("audio", 7)} == {(task["queue"], task["priority"]) for task in document(printed)["tasks"]}


def test_a_full_queue_stops_it_where_it_stays_full(monkeypatch: pytest.MonkeyPatch, printed: Printed) -> None:
    monkeypatch.setenv("DTQ_MAX_QUEUE_DEPTH", "2")
    file = written(*[a_line() for _ in range(4)])

    assert 6 == main(["submit", "--file", file, "--patience", "0"])

    out, err = printed()
    assert "2 submitted, 0 already there, 0 rejected\n" == out
    assert "dtq: stopped at line 3: queue_full: 2 of 2\n" in err
    assert "would submit 2 lines a second time" in err


def test_a_line_whose_task_cannot_be_read_does_not_hold_up_the_others(
    monkeypatch: pytest.MonkeyPatch, printed: Printed
) -> None:
    submit_many = TaskService.submit_many

    async def spoiled(self: TaskService, submissions: Sequence[Mapping[str, object]]) -> Sequence[object]:
        found = await submit_many(self, submissions)
        return [RecordUnreadable("the record of its task cannot be read"), *found[1:]]

    monkeypatch.setattr(TaskService, "submit_many", spoiled)

    assert 5 == main(["submit", "--file", written(a_line(), a_line()), "--patience", "0"])

    out, err = printed()
    assert "1 submitted, 0 already there, 1 rejected\n" == out
    assert "dtq: line 1: the record of its task cannot be read; trying again does not help: see `dtq doctor`\n" in err


def test_only_a_line_with_a_key_is_sent_again_when_nobody_knows_what_became_of_it(
    monkeypatch: pytest.MonkeyPatch, printed: Printed
) -> None:
    submit_many, sent = TaskService.submit_many, list[Sequence[Mapping[str, object]]]()

    async def unheard(self: TaskService, submissions: Sequence[Mapping[str, object]]) -> Sequence[object]:
        sent.append(submissions)
        found = await submit_many(self, submissions)
        return [OutcomeUnknown("the answer was lost") for _ in found] if len(sent) == 1 else found

    monkeypatch.setattr(TaskService, "submit_many", unheard)

    code = main(["submit", "--file", written(a_line(), a_line(idempotency_key="key")), "--json"])

    assert code != 0
    assert [[None, "key"], ["key"]] == [[one.get("idempotency_key") for one in batch] for batch in sent]
    lines, _ = results(printed)
    assert ["BROKER_UNAVAILABLE", None] == [line.get("code") for line in lines]
    assert lines[1]["duplicate"]


def test_a_longer_line_than_any_task_can_need_is_refused(monkeypatch: pytest.MonkeyPatch, printed: Printed) -> None:
    monkeypatch.setenv("DTQ_MAX_PAYLOAD_BYTES", "1000")
    file = written(a_line(payload={"a": "x" * 70_000}), a_line(payload={"a": "x" * 2_000}), a_line())

    assert 5 == main(["submit", "--file", file, "--json"])

    lines, _ = results(printed)
    assert [("PAYLOAD_TOO_LARGE", "line"), ("PAYLOAD_TOO_LARGE", "payload")] == [
        (line["code"], line["errors"][0]["field"]) for line in lines[:2]
    ]
    assert "queued" == lines[2]["status"]


def test_more_lines_than_go_together_are_submitted_too(printed: Printed) -> None:
    file = written(*[a_line() for _ in range(1_201)])

    assert 0 == main(["submit", "--file", file, "--json"])

    lines, _ = results(printed)
    assert list(range(1, 1_202)) == [line["line"] for line in lines]


@pytest.mark.parametrize("make", [_pipe, _file], ids=["pipe", "file"])
def test_lines_come_from_stdin_as_well(
    make: Callable[[str], IO[str]], monkeypatch: pytest.MonkeyPatch, printed: Printed
) -> None:
    with make(f"{a_line()}\n{a_line()}") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert 0 == main(["submit", "--file", "-"])

    assert "2 submitted, 0 already there, 0 rejected\n" == printed()[0]


def test_an_empty_file_is_done_at_once(printed: Printed) -> None:
    assert 0 == main(["submit", "--file", written()])

    assert "0 submitted, 0 already there, 0 rejected\n" == printed()[0]


@pytest.mark.parametrize(("path", "problem"), [("nowhere.jsonl", "No such file"), (".", "is a directory")])
def test_a_file_that_cannot_be_read_is_two(path: str, problem: str, printed: Printed) -> None:
    assert 2 == main(["submit", "--file", path])

    assert f"dtq: --file: {path}: {problem}" in printed()[1]


@pytest.mark.parametrize("extra", [["--payload", "{}"], ["--idempotency-key", "k"], ["--wait"]])
def test_what_is_for_a_single_task_is_not_for_a_file(extra: list[str], printed: Printed) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["submit", "--file", written(a_line()), *extra])

    assert 2 == ended.value.code
    assert "usage: dtq submit" in printed()[1]
