"""Redis' own record of a run: its append-only file, read as blocks of commands that were carried out as one.

What a script changed stands there as the commands that did it, in the order of their effect. A server that was killed
goes on writing where the last one stopped, so that one file tells of the whole run, whatever became of the processes.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

FOLDER: Final = "appendonlydir"
TO_KEEP: Final = (
    *("--auto-aof-rewrite-percentage", "0"),
    *("--aof-timestamp-enabled", "yes"),
    *("--aof-use-rdb-preamble", "no"),
)
"""The options of a server whose file is to be read: it is never rewritten, tells the time, and is text throughout."""


class MalformedFileError(Exception):
    """A file that no server has written, or one of a form that is not known here."""


class Block(Struct, frozen=True):
    """Commands that were carried out as one, and the second before which they were not."""

    since: float
    commands: Sequence[Sequence[str]]


def read_blocks(folder: Path) -> Iterator[Block]:
    """Read what the server whose data are in *folder* has changed, from its start on; an unfinished end is left out."""
    kept = folder / FOLDER
    for name in sorted(kept.glob("*.aof"), key=_number_of):
        if not name.name.endswith(".incr.aof"):
            continue
        yield from _blocks(name.read_bytes())


def read_base(folder: Path) -> Iterator[Block]:
    """Read what the server held when its file began: a replica's is what its master had told it."""
    for path in sorted((folder / FOLDER).glob("*.base.aof"), key=_number_of):
        yield from _blocks(path.read_bytes())


def cut_last_second(folder: Path) -> None:
    """Cut off what was written in the last second that the file tells of; its server is not running."""
    path = max((folder / FOLDER).glob("*.incr.aof"), key=_number_of)
    data = path.read_bytes()
    at = data.rfind(b"#TS:")
    if at > 0:
        path.write_bytes(data[:at])


def _number_of(path: Path) -> tuple[int, str]:
    return int(path.name.split(".")[-3]), path.name


def _blocks(data: bytes) -> Iterator[Block]:
    since = 0.0
    together: list[list[str]] | None = None
    for one in _commands(data):
        if isinstance(one, float):
            since = one
            continue
        name = one[0].upper()
        if name == "MULTI":
            together = []
        elif name == "EXEC":
            yield Block(since, together or [])
            together = None
        elif together is not None:
            together.append(one)
        else:
            yield Block(since, [one])


def _commands(data: bytes) -> Iterator[list[str] | float]:
    """Read commands, and times where they stand in between."""
    at = 0
    while at < len(data):
        end = data.find(b"\r\n", at)
        if end < 0:
            return
        head, line = data[at : at + 1], data[at + 1 : end]
        at = end + 2
        if head == b"#":
            if line.startswith(b"TS:"):
                yield float(line.removeprefix(b"TS:"))
            continue
        if head != b"*":
            raise MalformedFileError(f"no command begins with {data[at - 20 : at + 20]!r}")
        words = []
        for _ in range(int(line)):
            end = data.find(b"\r\n", at)
            if end < 0:
                return
            size = int(data[at + 1 : end])
            at = end + 2 + size + 2
            if at > len(data):
                return
            words.append(data[end + 2 : end + 2 + size].decode(errors="replace"))
        yield words


def entry_added(command: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Read the id and the fields of what XADD adds, whatever options stand between."""
    at = next(number for number, word in enumerate(command[2:], start=2) if _is_entry_id(word))
    return command[at], dict(zip(command[at + 1 :: 2], command[at + 2 :: 2], strict=True))


def leaves_nothing(command: Sequence[str]) -> bool:
    """Whether an entry is added and trimmed at once, which is how a server writes down an empty stream."""
    return command[0] == "XADD" and list(command[2:4]) == ["MAXLEN", "0"]


def _is_entry_id(word: str) -> bool:
    first, dash, second = word.partition("-")
    return bool(dash) and first.isdigit() and second.isdigit()
