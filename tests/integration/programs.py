"""dtq's commands as processes that never outlive their test, and waiting for what they do."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from tests.servers.process import die_with_parent

PROJECT = Path(__file__).resolve().parents[2]
POLL_S = 0.01
DTQ = [sys.executable, "-m", "dtq.entrypoints.cli"]

T = TypeVar("T")


class NotInTimeError(AssertionError):
    """What a test waited for did not come."""


def until(condition: Callable[[], T], *, within_s: float = 20.0, what: str = "it") -> T:
    """Return the first true answer of *condition*, asked again and again."""
    ends_at = time.monotonic() + within_s
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > ends_at:
            raise NotInTimeError(f"{what} did not come within {within_s:g} s")
        time.sleep(POLL_S)


def clean_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """The tests' environment without any setting of dtq but *settings*."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("DTQ_")}
    return {**kept, "PYTHONUNBUFFERED": "1", **settings}


def run_dtq(
    *arguments: str, settings: Mapping[str, str], folder: Path = PROJECT, timeout_s: float = 60.0, given: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [*DTQ, *arguments],
        env=clean_environment(settings),
        cwd=folder,
        input=given,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


class Program:
    """A command that stays; a context manager that ends it by force."""

    def __init__(self, *arguments: str, settings: Mapping[str, str], log: Path, folder: Path = PROJECT) -> None:
        self._log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [*DTQ, *arguments],
                env=clean_environment({"DTQ_LOG_JSON": "true", **settings}),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=die_with_parent(),  # noqa: PLW1509 - calls one C function, allocates nothing
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def output(self) -> str:
        return self._log.read_text(errors="replace")

    def lines(self) -> Sequence[Mapping[str, Any]]:
        """What it logged so far; whatever is no JSON line is left out."""
        lines = self.output.splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def logged(self, event: str, **fields: object) -> Sequence[Mapping[str, Any]]:
        """Its log lines of one event that have these fields."""
        wanted = {"event": event, **fields}
        return [line for line in self.lines() if all(line.get(name) == value for name, value in wanted.items())]

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self.process.kill()
        self.process.wait(timeout=20)

    def end(self, number: signal.Signals = signal.SIGTERM, *, within_s: float = 30.0) -> int:
        """Ask it to stop and return its exit code."""
        self.send(number)
        return self.process.wait(timeout=within_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.is_alive():
            self.kill()
        if error is not None:
            # pytest shows this beside the failure
            sys.stdout.write(f"--- {self._log.name}\n{self.output[-6000:]}\n")
