"""`dtq dev` as a newcomer uses it, and what is left when it ends in every way it can."""

import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import termios
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Self, TypeVar

import httpx
import pytest

from tests.integration.process_table import descendants, living, running
from tests.judged.program import COMMAND, Program
from tests.judged.waiting import wait_until
from tests.servers.process import free_port

READY = "dtq dev is ready"

T = TypeVar("T")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "a folder with spaces"
    path.mkdir()
    return path


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """The variables of this process, without any setting of dtq but *settings*."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("DTQ_")}
    return {**kept, "PYTHONUNBUFFERED": "1", **settings}


def until(condition: Callable[[], T], *, within_s: float = 30, what: str = "what was waited for") -> T:
    return wait_until(condition, within=within_s, what=what)


def run_dtq(*arguments: str, settings: Mapping[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, as another terminal would."""
    return subprocess.run(
        [*COMMAND, *arguments],
        env=environment(settings),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


class Dev(Program):
    """`dtq dev` in a folder; it ends with the test."""

    def __init__(self, folder: Path, *arguments: str, **settings: str) -> None:
        free = {"DTQ_API_PORT": str(free_port()), "DTQ_LOG_JSON": "true", **settings}
        self.folder = folder
        name = f"dev-{len(list(folder.glob('dev-*.log')))}"
        super().__init__(name, ["dev", *arguments], environment=environment(free), folder=folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def output(self) -> str:
        return self.log

    def end(self, number: signal.Signals) -> int:
        os.kill(self.pid, number)
        return self.exit_code(within=30)

    def ready(self) -> "Dev":
        until(lambda: READY in self.output or not self.alive(), what="dtq dev")
        assert READY in self.output, self.output
        return self

    @property
    def url(self) -> str:
        found = re.search(r"API +(http://\S+)", self.output)
        assert found is not None
        return found[1]

    def submit(self, *arguments: str, payload: str = "{}") -> str:
        done = run_dtq("submit", "--payload", payload, "--json", *arguments, settings={}, folder=self.folder)
        assert 0 == done.returncode, done.stderr
        task_id: str = json.loads(done.stdout)["task_id"]
        return task_id

    def status(self, task_id: str) -> str:
        done = run_dtq("get", task_id, "--json", settings={}, folder=self.folder)
        status: str = json.loads(done.stdout)["status"]
        return status


@pytest.fixture
def dev(folder: Path) -> Iterator[Dev]:
    with Dev(folder) as program:
        yield program.ready()


def test_the_commands_of_the_readme(dev: Dev) -> None:
    arguments = ["submit", "--type", "echo_task", "--payload", '{"hello": "world"}', "--wait"]

    done = run_dtq(*arguments, settings={}, folder=dev.folder)

    assert 0 == done.returncode, done.stderr
    assert '{"hello":"world"}' in done.stdout
    assert f"dtq submit --type echo_task --payload '{json.dumps({'hello': 'world'})}' --wait" in dev.output


def test_the_same_over_http(dev: Dev) -> None:
    body = {"task_type": "echo_task", "payload": {"hello": "world"}}
    with httpx.Client(base_url=dev.url) as client:
        task_id = client.post("/api/v1/tasks", json=body).json()["task_id"]

        shown = until(lambda: (one := client.get(f"/api/v1/tasks/{task_id}").json())["status"] == "succeeded" and one)

        assert {"hello": "world"} == shown["result"]
        assert 200 == client.get("/docs").status_code


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_finishes_what_runs_and_leaves_nothing(dev: Dev, number: signal.Signals) -> None:
    # long enough to be seen running, by a command that takes its time on a busy machine
    task_id = dev.submit("--type", "sleep_task", payload='{"seconds": 6}')
    until(lambda: dev.status(task_id) == "running")
    parts = descendants(dev.pid)

    code = dev.end(number)

    assert 0 == code
    assert set() == living(parts)
    lines = [line for line in dev.output.splitlines() if task_id in line]
    assert [line for line in lines if "TASK_SUCCEEDED" in line]


def test_killed_it_leaves_nothing_and_its_work_survives(dev: Dev) -> None:
    task_id = dev.submit("--type", "echo_task", "--delay-seconds", "3600")
    parts = descendants(dev.pid)

    dev.kill()

    assert 3 <= len(parts)
    until(lambda: not living(parts), within_s=10, what="the end of every part")
    with Dev(dev.folder) as again:
        again.ready()
        assert "pending" == again.status(task_id)


def test_a_second_one_in_the_same_folder_is_refused(dev: Dev) -> None:
    done = run_dtq("dev", settings={}, folder=dev.folder)

    assert 1 == done.returncode
    assert "another one runs in this folder already" in done.stdout
    assert 200 == httpx.get(f"{dev.url}/ready").status_code


def test_a_port_that_is_taken_is_passed_over(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with Dev(folder, DTQ_API_PORT=str(port)) as dev:
            assert 200 == httpx.get(f"{dev.ready().url}/ready").status_code
            assert int(dev.url.rpartition(":")[2]) > port


def test_its_server_is_started_again_when_it_dies(dev: Dev) -> None:
    found = re.search(r"broker +redis://127.0.0.1:(\d+)", dev.output)
    assert found is not None
    address = f"127.0.0.1:{found[1]}"
    [server] = [pid for pid, process in running().items() if address in process.command]

    os.kill(server, signal.SIGKILL)

    until(lambda: "the server ended with -9; it is started again" in dev.output)
    again = ["submit", "--type", "echo_task", "--payload", "{}", "--wait", "20"]
    until(lambda: run_dtq(*again, settings={}, folder=dev.folder).returncode == 0, what="a task on the new server")


def test_a_redis_of_ones_own_is_used(folder: Path, dev: Dev) -> None:
    found = re.search(r"broker +(redis://\S+)", dev.output)
    assert found is not None
    other = folder / "other"
    other.mkdir()

    with Dev(other, DTQ_REDIS_URL=found[1], DTQ_KEY_PREFIX="another") as second:
        second.ready()
        task_id = second.submit("--type", "echo_task")

        until(lambda: second.status(task_id) == "succeeded")
        assert not (other / ".dtq" / "data").exists()


def test_ones_own_tasks_run_beside_the_demo(folder: Path) -> None:
    (folder / "mine.py").write_text('from dtq import task\n\n@task("mine")\ndef mine(payload, ctx):\n    return 7\n')

    with Dev(folder, "--tasks", "mine") as dev:
        dev.ready()
        ids = [dev.submit("--type", name) for name in ("mine", "echo_task")]

        until(lambda: {"succeeded"} == {dev.status(task_id) for task_id in ids})


def test_without_any_server_the_error_says_what_to_do(folder: Path) -> None:
    done = run_dtq("dev", settings={"DTQ_REDIS_SERVER_BIN": str(folder / "none")}, folder=folder)

    assert 1 == done.returncode
    assert "DTQ_REDIS_SERVER_BIN" in done.stdout


def test_a_task_module_that_cannot_be_imported_ends_it(folder: Path) -> None:
    done = run_dtq("dev", "--tasks", "not_there_at_all", settings={}, folder=folder)

    assert 1 == done.returncode
    assert "not_there_at_all" in done.stdout + done.stderr


def test_ctrl_c_in_a_terminal_finishes_what_runs(folder: Path) -> None:
    master, terminal = os.openpty()
    process = subprocess.Popen(
        [*COMMAND, "dev"],
        env=environment({"DTQ_API_PORT": str(free_port())}),
        cwd=folder,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - one call, which allocates nothing
    )
    os.close(terminal)
    os.set_blocking(master, False)
    screen = Screen(master)
    until(lambda: READY in screen.text(), what="dtq dev")
    submitted = run_dtq("submit", "--type", "sleep_task", "--payload", '{"seconds": 1}', settings={}, folder=folder)
    task_id = submitted.stdout.split()[0]
    until(lambda: "TASK_STARTED" in screen.text())
    parts = descendants(process.pid)

    os.write(master, b"\x03")

    until(lambda: (screen.text(), process.poll())[1] is not None, what="the end")
    assert 0 == process.returncode
    assert re.search(rf"TASK_SUCCEEDED.*{task_id}", screen.text())
    assert set() == living(parts)
    os.close(master)


class Screen:
    """What a terminal shows."""

    def __init__(self, master: int) -> None:
        self._master = master
        self._seen = b""

    def text(self) -> str:
        try:
            while more := os.read(self._master, 65_536):
                self._seen += more
        except OSError:
            pass  # nothing more for now, or nobody there any more
        return re.sub(r"\x1b\[[0-9;]*m", "", self._seen.decode(errors="replace"))
