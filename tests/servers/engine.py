"""What runs a server: a process of our own or a container behave alike to the tests."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

AppendFsync = Literal["always", "everysec", "no"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a server is to be started; port 0 means any free one."""

    data_dir: Path | None
    appendfsync: AppendFsync
    port: int
    arguments: tuple[str, ...]

    def command_line(self) -> list[str]:
        """The server's arguments: snapshots are off, the append-only file is all that survives."""
        persistence = ["--save", "", "--appendonly", "yes", "--appendfsync", self.appendfsync]
        return [*persistence, *self.arguments]


class Engine(Protocol):
    """One server that can be ended and launched again, on the same port and data."""

    @property
    def url(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def pid(self) -> int: ...
    def launch(self) -> None: ...
    def alive(self) -> bool: ...
    def log(self) -> str: ...
    def kill(self) -> None: ...
    def stop(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def remove(self) -> None: ...
