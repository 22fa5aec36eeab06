"""Commands whose stdin, stdout or stderr is closed, cut off, full, or unable to say every character."""

import json
import os
import signal
import subprocess
from collections.abc import Sequence

import pytest

from tests.integration.test_cli import PLENTY_S, start, submit
from tests.judged.program import COMMAND
from tests.judged.system import System
from tests.judged.waiting import wait_until

ACCENTS = '{"text":"h\u00e9llo \U0001f600"}'
SUBMIT = ("submit", "--type", "echo", "--payload", "{}")
READING = (["list"], ["list", "--json"], ["queues"], ["workers"], ["audit"], ["completion", "bash"], ["--help"])


def run(
    system: System, redirection: str, *arguments: str, settings: dict[str, str] | None = None, text: str = ""
) -> "subprocess.CompletedProcess[bytes]":
    """Run a command as a shell does that was told a redirection."""
    return subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {redirection}', "sh", *COMMAND, *arguments],
        env=system.environment(settings or {}),
        cwd=system.folder,
        input=text.encode(),
        capture_output=True,
        timeout=PLENTY_S,
        check=False,
    )


def count(system: System) -> int:
    return len(json.loads(system.command("list", "--json", "--limit", "500").stdout)["tasks"])


def test_without_stdin_there_is_no_payload_to_read(system: System) -> None:
    done = run(system, "<&-", "submit", "--type", "echo", "--payload", "-")

    assert (2, b"", b"dtq: --payload: there is no stdin\n") == (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("redirection", [">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"])
def test_with_closed_streams_a_task_is_submitted_all_the_same(system: System, redirection: str) -> None:
    done = run(system, redirection, *SUBMIT, "--json")

    assert (0, 1) == (done.returncode, count(system))
    assert b"" == done.stderr
    assert b"" == done.stdout or "queued" == json.loads(done.stdout)["status"]


@pytest.mark.parametrize("arguments", READING)
def test_reading_commands_end_well_with_a_closed_stdout(system: System, arguments: Sequence[str]) -> None:
    done = run(system, ">&-", *arguments)

    assert (0, b"") == (done.returncode, done.stderr)


def test_an_error_without_stderr_does_not_go_to_stdout(system: System) -> None:
    done = run(system, "2>&-", "submit", "--type", "echo", "--payload", "x")

    assert (5, b"") == (done.returncode, done.stdout)


def unread(system: System, *arguments: str) -> tuple[int, bytes]:
    """The exit code and the errors of a command whose output nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)

    program = subprocess.Popen(
        [*COMMAND, *arguments],
        env=system.environment({}),
        cwd=system.folder,
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=subprocess.PIPE,
    )
    os.close(writer)
    _, err = program.communicate(timeout=PLENTY_S)
    return program.returncode, err


@pytest.mark.parametrize("arguments", [["--help"], ["submit", "--help"], ["list"], ["completion", "zsh"]])
def test_whoever_reads_nothing_ends_no_command_badly(system: System, arguments: Sequence[str]) -> None:
    assert (0, b"") == unread(system, *arguments)


def test_a_file_is_submitted_to_its_end_though_nobody_reads(system: System) -> None:
    (system.folder / "tasks.jsonl").write_text('{"task_type": "echo", "payload": {}}\n' * 300)
    code, err = unread(system, "submit", "--file", "tasks.jsonl", "--json")

    assert (0, 300, 300) == (code, json.loads(err)["submitted"], count(system))


def test_a_broken_stderr_changes_no_exit_code(system: System) -> None:
    reader, writer = os.pipe()
    os.close(reader)

    program = subprocess.Popen(
        [*COMMAND, "submit", "--type", "echo", "--payload", "x"],
        env=system.environment({}),
        cwd=system.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=writer,
    )
    os.close(writer)
    out, _ = program.communicate(timeout=PLENTY_S)

    assert (5, b"") == (program.returncode, out)


def test_on_a_full_disk_the_id_of_what_was_submitted_is_told(system: System) -> None:
    done = run(system, ">/dev/full", *SUBMIT)

    assert 1 == done.returncode
    assert b"No space left on device; the command was carried out" in done.stderr
    [task] = json.loads(system.command("list", "--json").stdout)["tasks"]
    assert task["task_id"].encode() in done.stderr


@pytest.mark.parametrize("way", [[], ["--json"]])
def test_on_a_full_disk_a_long_list_is_told_to_be_cut(system: System, way: list[str]) -> None:
    (system.folder / "tasks.jsonl").write_text('{"task_type": "echo", "payload": {}}\n' * 200)
    system.command("submit", "--file", "tasks.jsonl")

    done = run(system, ">/dev/full", "list", "--limit", "200", *way)

    assert (1, 1) == (done.returncode, len(done.stderr.splitlines()))
    assert done.stderr.startswith(b"dtq: stdout: [Errno 28] No space left on device; the command was carried out")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize("way", [["--wait", "0"], []])
def test_json_is_whole_where_stdout_lacks_its_characters(system: System, encoding: str, way: list[str]) -> None:
    settings = {"PYTHONIOENCODING": encoding, "LC_ALL": "C"}

    done = run(system, "", "submit", "--type", "echo", "--payload", ACCENTS, "--json", *way, settings=settings)

    assert (9 if way else 0, b"") == (done.returncode, done.stderr)
    document = json.loads(done.stdout.decode(encoding))
    assert (way == []) == ("payload" not in document)
    assert json.loads(ACCENTS) == document.get("payload", json.loads(ACCENTS))


def test_people_see_escapes_for_what_stdout_lacks(system: System) -> None:
    task_id = submit(system, "--payload", ACCENTS)

    done = run(system, "", "get", task_id, settings={"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"})

    assert (0, b"") == (done.returncode, done.stderr)
    assert rb'{"text":"h\xe9llo \U0001f600"}' in done.stdout


def test_a_payload_on_stdin_is_utf8_whatever_the_locale(system: System) -> None:
    settings = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}

    done = run(
        system, "", "submit", "--type", "echo", "--payload", "-", "--json", settings=settings, text='{"text":"h\u00e9"}'
    )

    assert 0 == done.returncode, done.stderr
    shown = json.loads(system.command("get", json.loads(done.stdout)["task_id"], "--json").stdout)
    assert {"text": "h\u00e9"} == shown["payload"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("way", [[], ["--json"]])
def test_a_wait_that_is_cut_off_names_the_task(
    system: System, number: signal.Signals, code: int, way: list[str]
) -> None:
    program = start(system, *SUBMIT, "--wait", *way)
    wait_until(lambda: count(system) == 1, within=PLENTY_S, what="the task is there")
    [task] = json.loads(system.command("list", "--json").stdout)["tasks"]

    os.kill(program.pid, number)

    assert code == program.exit_code(within=PLENTY_S)
    assert task["task_id"] in program.log
    if way:
        assert (task["task_id"], "queued") == tuple(json.loads(program.log)[name] for name in ("task_id", "status"))
    else:
        assert f"dtq get {task['task_id']} --wait" in program.log
    assert "Traceback" not in program.log


def test_a_wait_through_an_outage_that_stays_names_the_task(own_system: System) -> None:
    program = start(own_system, *SUBMIT, "--wait", "4")
    wait_until(lambda: count(own_system) == 1, within=PLENTY_S, what="the task is there")

    own_system.server.kill()

    assert 1 == program.exit_code(within=PLENTY_S)
    assert "dtq get " in program.log
    assert "the broker, which DTQ_REDIS_URL names, is unavailable" in program.log
