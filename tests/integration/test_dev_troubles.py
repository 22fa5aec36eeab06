"""`dtq dev` where something is wrong: with its folder, its data, its settings, or the broker that it is told to use."""

import os
import re
import signal
from pathlib import Path

import pytest

from tests.integration.process_table import running
from tests.integration.test_dev import READY, Dev, folder, run_dtq, until
from tests.servers.process import free_port

__all__ = ["folder"]


def worker_of(dev: Dev) -> int:
    [worker] = [
        pid for pid, process in running().items() if process.parent == dev.pid and "worker run" in process.command
    ]
    return worker


def test_a_worker_id_of_ones_own_keeps_nothing_from_starting_again(folder: Path) -> None:
    with Dev(folder, DTQ_WORKER_ID="mine") as dev:
        dev.ready()
        assert "DTQ_WORKER_ID is left aside" in dev.output

        os.kill(worker_of(dev), signal.SIGKILL)

        until(lambda: "the worker ended with -9; it is started again" in dev.output)
        task_id = dev.submit("--type", "echo_task")
        until(lambda: dev.status(task_id) == "succeeded")
        dev.kill()
    with Dev(folder, DTQ_WORKER_ID="mine") as again:
        again.ready()


def test_what_does_not_belong_into_its_folder_is_named(folder: Path) -> None:
    (folder / ".dtq" / "server.log").mkdir(parents=True)

    done = run_dtq("dev", settings={}, folder=folder)

    assert (2, "") == (done.returncode, done.stderr)
    assert f"dtq dev: {folder}/.dtq/server.log is a folder where a file belongs; move it away\n" == done.stdout


def test_a_broker_that_is_not_there_is_named(folder: Path) -> None:
    port = free_port()
    url = f"redis://:hidden-word@127.0.0.1:{port}/0"

    done = run_dtq("dev", settings={"DTQ_REDIS_URL": url}, folder=folder)

    assert 1 == done.returncode
    assert f"DTQ_REDIS_URL names, redis://:***@127.0.0.1:{port}/0, is not there" in done.stdout
    assert "server.log" not in done.stdout
    assert "hidden" not in done.stdout + done.stderr


def test_a_server_program_that_ends_at_once_is_not_waited_for(folder: Path) -> None:
    done = run_dtq("dev", settings={"DTQ_REDIS_SERVER_BIN": "/bin/false"}, folder=folder)

    assert (1, True) == (done.returncode, "the server ended with 1; it says nothing in" in done.stdout)


def test_damaged_data_are_named_with_what_repairs_them(folder: Path) -> None:
    with Dev(folder) as dev:
        dev.ready().submit("--type", "echo_task", "--wait")
        assert 0 == dev.end(signal.SIGINT)
    [path] = (folder / ".dtq" / "data" / "appendonlydir").glob("*incr*")
    path.write_bytes(path.read_bytes() + b"garbage\r\n")

    done = run_dtq("dev", settings={}, folder=folder)

    assert 1 == done.returncode
    assert f"append only file {path.name}" in done.stdout
    repair = re.search(r"to cut off what cannot be read: (.+)", done.stdout)
    assert repair is not None
    assert 0 == os.waitstatus_to_exitcode(os.system(f"yes | {repair[1]}"))  # noqa: S605 - as people would type it
    with Dev(folder) as again:
        again.ready()


@pytest.mark.parametrize(
    "command", [["list"], ["submit", "--type", "echo_task", "--payload", "{}", "--tasks", "dtq.demo"]]
)
def test_a_command_after_its_end_says_where_it_goes(folder: Path, command: list[str]) -> None:
    (folder / ".dtq").mkdir()

    done = run_dtq(*command, settings={"DTQ_KEY_PREFIX": "nobody-has-this"}, folder=folder)

    assert "dtq: warning: no `dtq dev` runs in this folder" in done.stderr
    assert "redis://localhost:6379/0" in done.stderr
    assert READY not in done.stdout
