"""Commands as processes: watched, interrupted, cut off, at a terminal, and light to start."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.judged.program import COMMAND, Program
from tests.judged.system import System
from tests.judged.waiting import wait_until

PLENTY_S = 30
NO_WEB = """
import sys
from dtq.entrypoints.cli import main
codes = [main(line.split()) for line in sys.argv[1:]]
sys.exit(any(codes) or "litestar" in sys.modules)
"""


def start(system: System, *arguments: str, settings: dict[str, str] | None = None) -> Program:
    name = f"{arguments[0]}-{len(system.programs)}"
    program = Program(name, arguments, environment=system.environment(settings or {}), folder=system.folder)
    system.programs.append(program)
    return program


def watch(system: System, *arguments: str) -> Program:
    """Watch, from now on."""
    program = start(system, "watch", "--json", *arguments)
    wait_until(lambda: '"subscribed"' in program.log, within=PLENTY_S, what="it listens")
    return program


def events(program: Program) -> list[dict[str, Any]]:
    documents = [json.loads(line) for line in program.log.splitlines() if line.startswith("{")]
    return [document for document in documents if "control" not in document]


def submit(system: System, *arguments: str) -> str:
    done = system.command("submit", "--type", "echo", "--payload", "{}", "--json", *arguments)
    assert 0 == done.returncode, done.stderr
    task_id: str = json.loads(done.stdout)["task_id"]
    return task_id


def test_watch_shows_the_life_of_a_task_in_order(system: System) -> None:
    system.worker()
    program = watch(system, "--queue", "default", "--count", "3")

    task_id = submit(system)

    assert 0 == program.exit_code(within=PLENTY_S)
    assert [(task_id, kind) for kind in ("TASK_QUEUED", "TASK_STARTED", "TASK_SUCCEEDED")] == [
        (event["task_id"], event["type"]) for event in events(program)
    ]


def test_watch_shows_only_what_was_asked_for(system: System) -> None:
    by_type = watch(system, "--type", "TASK_CANCELLED", "--count", "1")
    by_queue = watch(system, "--queue", "mail", "--queue", "audio", "--count", "2")
    first, in_mail, in_audio = submit(system), submit(system, "--queue", "mail"), submit(system, "--queue", "audio")
    by_task = watch(system, "--task", first, "--count", "1")

    system.command("cancel", first)

    for program in (by_type, by_queue, by_task):
        assert 0 == program.exit_code(within=PLENTY_S)
    assert [[first], [in_mail, in_audio], [first]] == [
        [event["task_id"] for event in events(program)] for program in (by_type, by_queue, by_task)
    ]


def test_watch_is_readable_for_people_and_ends_with_ctrl_c(system: System) -> None:
    program = start(system, "watch")
    wait_until(lambda: "dtq: watching" in program.log, within=PLENTY_S, what="it listens")
    task_id = submit(system)
    wait_until(lambda: task_id in program.log, within=PLENTY_S, what="the event")

    os.kill(program.pid, signal.SIGINT)

    assert 130 == program.exit_code(within=PLENTY_S)
    [line] = [line for line in program.log.splitlines() if task_id in line]
    assert ["TASK_QUEUED", task_id, "echo", "default", "attempt", "0"] == line.split()[2:]
    assert "Traceback" not in program.log


def test_watch_comes_back_when_the_server_does(own_system: System) -> None:
    system = own_system
    program = watch(system, "--type", "TASK_QUEUED", "--count", "1")

    system.server.kill()
    wait_until(lambda: '"interrupted"' in program.log, within=PLENTY_S, what="it says that the broker is away")
    system.server.restart()
    wait_until(lambda: '"broker_lost"' in program.log, within=PLENTY_S, what="it says that the broker is back")
    task_id = submit(system)

    assert 0 == program.exit_code(within=PLENTY_S)
    assert [task_id] == [event["task_id"] for event in events(program)]


def test_a_wrong_filter_is_two(system: System) -> None:
    done = system.command("watch", "--type", "TASK_LOST", "--queue", "Mail", "--task", "x")

    assert 2 == done.returncode
    assert ["queue", "type", "task_id"] == [line.split(": ")[1] for line in done.stderr.splitlines()]


def test_an_interrupted_file_says_what_was_submitted(system: System) -> None:
    lines = [json.dumps({"task_type": "echo", "payload": {"n": number}}) for number in range(5)]
    (system.folder / "tasks.jsonl").write_text("\n".join(lines))
    program = start(system, "submit", "--file", "tasks.jsonl", settings={"DTQ_MAX_QUEUE_DEPTH": "3"})
    wait_until(lambda: "line 4: queue_full" in program.log, within=PLENTY_S, what="it waits for room")

    os.kill(program.pid, signal.SIGINT)

    assert 130 == program.exit_code(within=PLENTY_S)
    assert "3 submitted, 0 already there, 0 rejected" in program.log
    assert "would submit 3 lines a second time" in program.log
    assert "Traceback" not in program.log


def test_a_file_waits_for_room_and_goes_on(system: System) -> None:
    lines = [json.dumps({"task_type": "echo", "payload": {"n": number}}) for number in range(9)]
    (system.folder / "tasks.jsonl").write_text("\n".join(lines))
    system.worker()

    done = system.command("submit", "--file", "tasks.jsonl", settings={"DTQ_MAX_QUEUE_DEPTH": "3"})

    assert (0, "9 submitted, 0 already there, 0 rejected\n") == (done.returncode, done.stdout)


def test_a_file_without_a_broker_stops_at_its_first_line(system: System) -> None:
    (system.folder / "tasks.jsonl").write_text('{"task_type": "echo", "payload": {}}')

    done = system.command(
        "submit", "--file", "tasks.jsonl", "--patience", "0", settings={"DTQ_REDIS_URL": "redis://127.0.0.1:1/0"}
    )

    assert (1, "0 submitted, 0 already there, 0 rejected\n") == (done.returncode, done.stdout)
    assert "dtq: stopped at line 1: the broker, which DTQ_REDIS_URL names, is unavailable" in done.stderr


def test_whoever_stops_reading_ends_a_command_quietly(system: System) -> None:
    for _ in range(3):
        submit(system)

    for arguments in (["list"], ["list", "--json"], ["queues"], ["completion", "zsh"]):
        program = _piped(system, arguments)
        assert program.stdout is not None
        program.stdout.close()

        _, err = program.communicate(timeout=PLENTY_S)
        assert (0, b"") == (program.returncode, err)


def test_a_full_disk_is_told(system: System) -> None:
    submit(system)

    with Path("/dev/full").open("wb") as full:
        program = _piped(system, ["list", "--json"], stdout=full)
        _, err = program.communicate(timeout=PLENTY_S)

    assert 1 == program.returncode
    assert err.startswith(b"dtq: stdout: [Errno 28] No space left on device; ")


def test_at_a_terminal_there_are_questions_bars_and_colors(system: System) -> None:
    task_id = submit(system)
    (system.folder / "tasks.jsonl").write_text('{"task_type": "echo", "payload": {}}\n' * 2_000)

    ended, shown = _at_terminal(system, ["submit", "--file", "tasks.jsonl"])
    assert (0, True) == (ended, "submitting" in shown and "\x1b[" in shown)
    ended, shown = _at_terminal(system, ["purge", "--queue", "default"], answer="no\n")
    assert (2, True) == (ended, "cancel all tasks that wait in queue default (2001)? [y/N]" in shown)
    ended, shown = _at_terminal(system, ["purge", "--queue", "default"], answer="y\n")
    assert (0, True) == (ended, "tasks of default cancelled: 2001" in shown)
    ended, shown = _at_terminal(system, ["get", task_id])
    assert (0, True) == (ended, "cancelled" in shown)


def test_no_color_is_respected(system: System) -> None:
    system.worker()
    submit(system, "--wait", str(PLENTY_S))

    _, colored = _at_terminal(system, ["list"])
    _, plain = _at_terminal(system, ["list"], settings={"NO_COLOR": "1"})

    assert "\x1b[" in colored
    assert "\x1b" not in plain
    assert "succeeded" in plain


def test_no_command_of_an_operator_loads_a_web_framework(system: System) -> None:
    (system.folder / "tasks.jsonl").write_text('{"task_type": "echo", "payload": {}}')
    watcher = start(system, "watch", "--count", "1")
    lines = [
        "submit --type echo --payload {}",
        "submit --file tasks.jsonl",
        "list",
        "queues",
        "queue pause mail",
        "queue resume mail",
        "queue stats",
        "workers",
        "audit",
        "dlq list",
        "purge-dlq --yes",
        "purge --queue default --yes",
        "completion bash",
    ]

    done = subprocess.run(
        [sys.executable, "-c", NO_WEB, *lines],
        env=system.environment({}),
        cwd=system.folder,
        capture_output=True,
        text=True,
        timeout=PLENTY_S,
        check=False,
    )

    assert 0 == done.returncode, done.stderr
    assert watcher.exit_code(within=PLENTY_S) == 0


def _piped(system: System, arguments: Sequence[str], *, stdout: Any = subprocess.PIPE) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [*COMMAND, *arguments],
        env=system.environment({}),
        cwd=system.folder,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )


def _at_terminal(
    system: System, arguments: Sequence[str], *, answer: str = "", settings: dict[str, str] | None = None
) -> tuple[int, str]:
    """Run a command at a terminal of its own; return how it ended and what it showed."""
    ours, theirs = pty.openpty()
    environment = system.environment({"TERM": "xterm-256color", "COLUMNS": "100", **(settings or {})})
    program = subprocess.Popen(
        [*COMMAND, *arguments], env=environment, cwd=system.folder, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    os.write(ours, answer.encode())
    shown = bytearray()
    try:
        while part := os.read(ours, 65_536):
            shown += part
    except OSError:
        # the last one who had the terminal's other end open has closed it
        pass
    finally:
        os.close(ours)
    return program.wait(timeout=PLENTY_S), shown.decode()
