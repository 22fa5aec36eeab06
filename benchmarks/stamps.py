"""When each task ran: one slot a task in shared memory, written by handlers without any traffic of their own.

The file has 16 bytes a task: CLOCK_MONOTONIC at the first run, which is one clock for all processes of a machine, and
how often the task ran.
"""

import array
import mmap
import os
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Final, Self

VARIABLE: Final = "BENCHMARK_STAMPS"
SHARED: Final = Path("/dev/shm")  # noqa: S108 - memory that two processes see; mkstemp gives the name
WORD: Final = 8


@cache
def _slots() -> "memoryview[int]":
    with Path(os.environ[VARIABLE]).open("r+b") as file:
        return _words_of(mmap.mmap(file.fileno(), 0))


def _words_of(shared: mmap.mmap) -> "memoryview[int]":
    return memoryview(shared).cast("q")


def stamp(number: int) -> None:
    """Note that task *number* runs now."""
    slots = _slots()
    if not slots[number]:
        slots[number] = time.monotonic_ns()
    slots[len(slots) // 2 + number] += 1


class Stamps:
    """The slots of *count* tasks, as the one who measures sees them.

    They are numbered from *first* on: tasks of lower numbers stamp too, but are not looked at. A context manager.
    """

    def __init__(self, count: int, *, first: int = 0) -> None:
        self.count = count
        self.numbers = range(first, first + count)
        handle, name = tempfile.mkstemp(prefix="dtq-stamps-", dir=SHARED if SHARED.is_dir() else None)
        os.ftruncate(handle, 2 * WORD * (first + count))
        self._slots = _words_of(mmap.mmap(handle, 0))
        os.close(handle)
        self.path = Path(name)
        self._begun = 0

    def environment(self) -> dict[str, str]:
        """Return what a process is to be told so that its handlers write here."""
        return {VARIABLE: str(self.path)}

    def times_ns(self) -> list[int]:
        """Return when each task first ran, in the order of their numbers; 0 where it has not."""
        return list(self._looked_at())

    def time_ns(self, number: int) -> int:
        """Return when task *number* first ran; 0 where it has not."""
        return self._slots[number]

    def runs(self) -> int:
        """Return how many runs there were, repeated ones among them."""
        return sum(self._slots[-self.count :])

    def done(self) -> int:
        """Return how many tasks have run."""
        return self.count - array.array("q", self._looked_at()).count(0)

    def begun(self) -> int:
        """Return how many tasks have run without a gap from the first on; cheap to ask often."""
        while self._begun < self.count and self._slots[self.numbers.start + self._begun]:
            self._begun += 1
        return self._begun

    def close(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _looked_at(self) -> "memoryview[int]":
        return self._slots[self.numbers.start : self.numbers.stop]
