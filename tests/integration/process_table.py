"""What runs on this machine: from /proc where there is one, else from ps."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
PS = ("/bin/ps", "-A", "-ww", "-o", "pid=,ppid=,stat=,args=")


class Running(NamedTuple):
    """A process that lives, its parent, and how it was called."""

    parent: int
    command: str


def running() -> Mapping[int, Running]:
    """Every living process; one that has ended and that nobody has asked about yet is none."""
    return _of_proc() if (PROC / "self").exists() else _of_ps()


def descendants(pid: int) -> set[int]:
    """The living processes that *pid* has started, and those that these have started."""
    table = running()
    found: set[int] = set()
    news = {pid}
    while news:
        news = {child for child, process in table.items() if process.parent in news} - found
        found |= news
    return found


def living(pids: set[int]) -> set[int]:
    """Those of *pids* that live."""
    return pids & set(running())


def _of_proc() -> Mapping[int, Running]:
    found = {}
    for folder in PROC.glob("[0-9]*"):
        try:
            state, parent, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_text(errors="replace").replace("\0", " ")
        except OSError:
            continue  # it has ended meanwhile
        if state != "Z":
            found[int(folder.name)] = Running(int(parent), command)
    return found


def _of_ps() -> Mapping[int, Running]:
    listed = subprocess.run(PS, capture_output=True, text=True, check=True).stdout
    rows = [line.split(maxsplit=3) for line in listed.splitlines()]
    return {int(pid): Running(int(parent), " ".join(rest)) for pid, parent, state, *rest in rows if state[0] != "Z"}
