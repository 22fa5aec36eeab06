"""One process of dtq in a test's hands, with its log."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tests.judged.waiting import wait_until
from tests.servers.process import die_with_parent

COMMAND = (sys.executable, "-m", "dtq.entrypoints.cli")
GONE_WITHIN_S = 10.0


class Process(Protocol):
    """A process that was started here, as subprocess has it."""

    returncode: int | None

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def kill(self) -> None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int, /) -> None: ...


class Spawn(Protocol):
    """A way to start a command of dtq whose output goes to a file."""

    def __call__(
        self, arguments: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path
    ) -> Process: ...


def spawn_anew(arguments: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path) -> Process:
    """Start a Python for the command, as users do."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [*COMMAND, *arguments],
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=die_with_parent(),  # noqa: PLW1509 - calls one C function, allocates nothing
        )


class Program:
    """A running command of dtq; everything it prints goes to its log."""

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: Path,
        spawn: Spawn = spawn_anew,
    ) -> None:
        self.name = name
        self.log_path = folder / f"{name}.log"
        self._process = spawn(arguments, environment=environment, folder=folder, log=self.log_path)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._process.kill()
        self._process.wait(timeout=GONE_WITHIN_S)

    def terminate(self) -> None:
        """SIGTERM: asks to drain, or, asked again, to end now."""
        self._process.send_signal(signal.SIGTERM)

    def freeze(self) -> None:
        """SIGSTOP, and wait until every thread stands still."""
        self._process.send_signal(signal.SIGSTOP)
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), f"{self.name} ended instead of stopping: {status}"

    def thaw(self) -> None:
        """SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    def exit_code(self, *, within: float) -> int:
        """Wait for the end and return the exit code, negative for a signal."""
        wait_until(lambda: not self.alive(), within=within, what=f"{self.name} ends")
        code = self._process.returncode
        assert code is not None
        return code

    def close(self) -> None:
        """End it, in whatever state it is."""
        if self.alive():
            self.kill()
