"""Processes that are measured: started, asked for CPU and memory, ended. Linux tells both in /proc."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.servers.process import die_with_parent

ROOT: Final = Path(__file__).resolve().parents[1]
DTQ: Final = (sys.executable, "-m", "dtq.entrypoints.cli")
ENDS_WITHIN_S: Final = 15.0
TICKS: Final = os.sysconf("SC_CLK_TCK")
MIB: Final = 2**10
"""KiB of a MiB."""

SIZES: Final = {
    "DTQ_MAX_QUEUE_DEPTH": "2000000",
    "DTQ_MAX_SCHEDULED": "1000000",
    "DTQ_MAX_QUEUES": "2000",
}
"""What the sizes of a benchmark need; everything else is as it comes: events, metrics, logs at INFO."""


class Program:
    """A process in a session of its own whose output goes to a file; a context manager that ends it."""

    def __init__(self, command: Sequence[str], *, log: Path, settings: Mapping[str, str]) -> None:
        own = {name: text for name, text in os.environ.items() if not name.startswith("DTQ_")}
        path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), str(ROOT)]))
        self.log = log
        self.began_ns = time.monotonic_ns()
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                env={**own, "PYTHONPATH": path, **SIZES, **settings},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=die_with_parent(),  # noqa: PLW1509 - calls one C function, allocates nothing
            )

    @property
    def pid(self) -> int:
        """The process as this machine sees it."""
        return self._process.pid

    def check(self) -> None:
        """Raise with the end of its log if it is gone."""
        if self._process.poll() is not None:
            raise RuntimeError(f"{self._process.args!r} ended:\n{self.log.read_text(errors='replace')[-2000:]}")

    def cpu_s(self) -> float:
        """Return the seconds of CPU that it has used, all its threads together."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory_mib(self) -> float:
        """Return how much memory it has in RAM."""
        return self._status_mib("VmRSS")

    def peak_mib(self) -> float:
        """Return the most memory that it had in RAM at any time, its start among them."""
        return self._status_mib("VmHWM")

    def _status_mib(self, name: str) -> float:
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) / MIB
        raise RuntimeError(f"{self._process.args!r} has no memory any more")

    def stop(self) -> None:
        """Ask it to end, and end it where it does not."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(ENDS_WITHIN_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def wait_until_done(condition: Callable[[], bool], *, within_s: float, program: Program, every_s: float = 0.03) -> None:
    """Return when *condition* holds. Raises TimeoutError, and what ``check`` does."""
    ends_at = time.monotonic() + within_s
    while not condition():
        program.check()
        if time.monotonic() > ends_at:
            raise TimeoutError(f"not within {within_s:g} s; the log ends: {program.log.read_text()[-500:]}")
        time.sleep(every_s)
