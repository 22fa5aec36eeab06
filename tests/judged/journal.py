"""What handlers did, written by themselves to a file: it outlives their process and needs no Redis."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dtq import TaskContext

PATH_VARIABLE = "DTQ_TEST_JOURNAL"

What = Literal["start", "end", "raise", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One line: what happened in which attempt, where and when; ``at`` is the machine's monotonic clock."""

    task_id: str
    what: What
    attempt: int
    worker_id: str
    pid: int
    at: float


def write(ctx: TaskContext, what: What) -> None:
    """Append a line; whole, since a short append to a local file is one act."""
    now = time.monotonic()
    line = {"task_id": ctx.task_id, "what": what, "attempt": ctx.attempt, "worker_id": ctx.worker_id}
    text = json.dumps({**line, "pid": os.getpid(), "at": now}) + "\n"
    descriptor = os.open(os.environ[PATH_VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


class Journal:
    """Reads what handlers wrote, each line once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.touch()
        self._read = 0
        self._marks: list[Mark] = []

    def marks(self, keep: Callable[[Mark], bool] = lambda _: True) -> list[Mark]:
        """Return what was written so far, oldest first, as far as *keep* says so."""
        with self.path.open("rb") as file:
            file.seek(self._read)
            whole, newline, _ = file.read().rpartition(b"\n")
        self._read += len(whole) + len(newline)
        self._marks += [Mark(**json.loads(line)) for line in whole.splitlines()]
        return [mark for mark in self._marks if keep(mark)]

    def of(self, task_id: str, what: What = "start") -> list[Mark]:
        """Return the marks of one task."""
        return self.marks(lambda mark: mark.task_id == task_id and mark.what == what)

    def starts(self, task_id: str) -> list[int]:
        """Return the number of each attempt of a task that has begun."""
        return [mark.attempt for mark in self.of(task_id)]
