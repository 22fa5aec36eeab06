"""Ends the children of a process that died without a word, where the system does not do it.

`python -m dtq.entrypoints.watcher`: reads lines `PID SIGNAL` from its stdin; a line `PID 0` takes one back. When stdin
ends, and so its parent, every process that is left gets its signal.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Iterable


def main() -> None:
    """Watch until stdin ends."""
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    for pid, number in left(sys.stdin).items():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def left(lines: Iterable[str]) -> dict[int, int]:
    """Return the processes that were named and not taken back, with their signals."""
    watched: dict[int, int] = {}
    for line in lines:
        pid, number = map(int, line.split())
        if number:
            watched[pid] = number
        else:
            watched.pop(pid, None)
    return watched


if __name__ == "__main__":
    main()
