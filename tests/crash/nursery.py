"""A process that has loaded dtq once and forks for each command: a real process in a tenth of the time.

As a program it reads orders from its standard input, a JSON object a line, and answers each with a line.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NoReturn, Self

from tests.servers.process import die_with_parent

ROOT = Path(__file__).parents[2]
POLL_S = 0.002
PRELOADED = (
    "dtq.adapters.prometheus",
    "dtq.adapters.redis",
    "dtq.entrypoints.api",
    "dtq.entrypoints.cli",
    "dtq.entrypoints.container",
    "dtq.entrypoints.http.app",
    "dtq.entrypoints.worker",
)


class Child:
    """A forked process, known by its parent's pid for it; the same to a test as one that was started anew."""

    def __init__(self, pid: int, nursery: "Nursery") -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._nursery = nursery

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._nursery.order({"ask": self.pid})
        return self.returncode

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        ends_at = time.monotonic() + (timeout or 0.0)
        while (code := self.poll()) is None:
            if timeout is not None and time.monotonic() > ends_at:
                raise subprocess.TimeoutExpired("dtq", timeout)
            time.sleep(POLL_S)
        return code

    def send_signal(self, sig: int, /) -> None:
        # until its end has been asked for, nobody else can have its number
        if self.poll() is None:
            os.kill(self.pid, sig)


class Nursery:
    """Forks commands of dtq; a context manager that ends with all its children."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=die_with_parent(),  # noqa: PLW1509 - calls one C function, allocates nothing
        )

    def spawn(self, arguments: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path) -> Child:
        """Start a command of dtq."""
        order = {"run": [*arguments], "environment": dict(environment), "folder": str(folder), "log": str(log)}
        return Child(self.order(order), self)

    def order(self, order: Mapping[str, Any]) -> Any:
        """Give an order and return the answer."""
        ends: tuple[IO[str] | None, IO[str] | None] = (self._process.stdin, self._process.stdout)
        orders, answers = ends
        assert orders is not None
        assert answers is not None
        orders.write(json.dumps(order) + "\n")
        orders.flush()
        return json.loads(answers.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        for end in (self._process.stdin, self._process.stdout):
            if end is not None:
                end.close()


def _serve() -> None:
    arm = die_with_parent()
    for name in PRELOADED:
        import_module(name)
    for line in sys.stdin:
        order = json.loads(line)
        if "ask" in order:
            answer = _exit_code(order["ask"])
        else:
            answer = os.fork()
            if answer == 0:
                if arm is not None:
                    arm()
                _become(order)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _exit_code(pid: int) -> int | None:
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _become(order: Mapping[str, Any]) -> NoReturn:
    code = 1
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        output = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        for source, target in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(source, target)
        os.environ.clear()
        os.environ.update(order["environment"])
        os.chdir(order["folder"])
        sys.stdin = open(0, closefd=False)  # noqa: SIM115 - the process' own, to its end
        code = import_module("dtq.entrypoints.cli").main(order["run"])
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
