"""One process of dtq in a test's hands, with its log."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.judged.waiting import wait_until
from tests.servers.process import die_with_parent

COMMAND = (sys.executable, "-m", "dtq.entrypoints.cli")
GONE_WITHIN_S = 10.0


class Program:
    """A running command of dtq; everything it prints goes to its log."""

    def __init__(self, name: str, arguments: Sequence[str], *, environment: Mapping[str, str], folder: Path) -> None:
        self.name = name
        self.log_path = folder / f"{name}.log"
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [*COMMAND, *arguments],
                env=dict(environment),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent(),  # noqa: PLW1509 - calls one C function, allocates nothing
            )

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
        code: int = self._process.returncode
        return code

    def close(self) -> None:
        """End it, in whatever state it is."""
        if self.alive():
            self.kill()
