"""A stranger takes a dead letter from failure to success with docs/cli.md in hand, in an empty folder."""

import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.judged.program import COMMAND, Program
from tests.judged.waiting import wait_until
from tests.servers.process import free_port

PAGE = Path(__file__).resolve().parents[2] / "docs/cli.md"
WITHIN_S = 60


def test_the_commands_of_the_page_lead_from_failure_to_success(tmp_path: Path) -> None:
    page = PAGE.read_text().partition("\n## From failure to success\n")[2].partition("\n## ")[0]
    [code] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    start, *commands = re.findall(
        r"^(?:dtq|echo) .*$", "\n".join(re.findall(r"```sh\n(.*?)```", page, re.DOTALL)), re.MULTILINE
    )
    (tmp_path / "my_tasks.py").write_text(code)

    with _running(start, tmp_path):
        ended = {}
        for command in commands:
            if command.startswith("echo"):
                _, text, _, file = shlex.split(command)
                (tmp_path / file).write_text(f"{text}\n")
            else:
                task_id = _dead_letter(tmp_path) if "TASK_ID" in command else ""
                ended[command.split(" --")[0]] = _run(command.replace("TASK_ID", task_id), tmp_path)

    submitted, dead_letters, looked_at, retried, audit = ended.values()
    assert (8, True) == (submitted.returncode, "dead_lettered" in submitted.stdout)
    assert "FileNotFoundError" in dead_letters.stdout
    assert "address.txt" in looked_at.stdout
    assert (0, True) == (retried.returncode, '{"sent_to":"Rome","order":7}' in retried.stdout)
    assert re.search(r"cli:\S+ +dlq\.requeue .* done ", audit.stdout)


def test_what_is_done_about_a_dead_letter_stands_in_the_first_help(tmp_path: Path) -> None:
    out = _run("dtq --help", tmp_path).stdout

    for command in ("dtq dev", "dtq dlq list", "dtq get TASK_ID", "dtq retry-dlq TASK_ID --wait", "dtq discard-dlq"):
        assert f"\n  {command}" in out


@contextmanager
def _running(command: str, folder: Path) -> Iterator[None]:
    environment = _environment() | {"DTQ_API_PORT": str(free_port())}
    dev = Program("dev", shlex.split(command)[1:], environment=environment, folder=folder)
    try:
        wait_until(lambda: "is ready" in dev.log or not dev.alive(), within=WITHIN_S, what="dtq dev is ready")
        assert dev.alive(), dev.log
        yield
        os.kill(dev.pid, signal.SIGINT)
        assert 0 == dev.exit_code(within=WITHIN_S)
    finally:
        dev.close()


def _dead_letter(folder: Path) -> str:
    """The id that the stranger reads in the list, or after that knows."""
    known = folder / "id"
    if not known.exists():
        [letter] = json.loads(_run("dtq dlq list --json", folder).stdout)["dead_letters"]
        known.write_text(letter["task_id"])
    return known.read_text()


def _run(command: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*COMMAND, *shlex.split(command)[1:]],
        env=_environment(),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )


def _environment() -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("DTQ_")}
    return {**kept, "PYTHONUNBUFFERED": "1"}
