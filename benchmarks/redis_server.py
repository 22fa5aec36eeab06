"""The Redis that is measured on: a process of our own on loopback, and what it tells of itself."""

from pathlib import Path
from typing import Any, Final

from redis import Redis

from tests.servers import Kind, RedisServer
from tests.servers.kinds import KINDS, MissingServerError

PLAIN: Final = ("--appendonly", "no", "--latency-tracking", "no")
"""No persistence, as the harness of the peers has it; everything else as the server comes."""

RECOMMENDED: Final = Path(__file__).resolve().parents[1] / "deploy" / "redis.conf"
ORDER: Final[tuple[Kind, ...]] = ("path", "redis82", "valkey91")
FLUSHED_WITHIN_S: Final = 60
"""How long the server may take for a command: to forget a million tasks takes seconds."""
OWN_COMMANDS: Final = frozenset(
    {"client|setinfo", "client|setname", "config", "config|resetstat", "flushall", "hello", "info"}
)


def directives(conf: Path) -> tuple[str, ...]:
    """Return the directives of a configuration file as arguments of a command line."""
    arguments: list[str] = []
    for line in conf.read_text().splitlines():
        if not line.startswith("#") and line.strip():
            name, *words = line.split()
            arguments += [f"--{name}", *(word.strip('"') for word in words)]
    return tuple(arguments)


class MeasuredServer:
    """A server that counts: CPU, memory, commands and reads, each since the last ``reset``."""

    def __init__(self, kind: Kind | None, *, arguments: tuple[str, ...] = PLAIN) -> None:
        self._server = _start(kind, arguments)
        # redis-py's annotations allow for every mode of a client at once, so that no answer has a useful type
        self.redis: Any = Redis.from_url(self._server.url, socket_timeout=FLUSHED_WITHIN_S)
        self.version = str(self.redis.info("server")["redis_version"])

    @property
    def url(self) -> str:
        """Where it listens."""
        return self._server.url

    def reset(self) -> None:
        """Forget what was counted."""
        self.redis.config_resetstat()

    def flush(self) -> None:
        """Forget every key, and what was counted."""
        self.redis.flushall()
        self.reset()

    def cpu_s(self) -> float:
        """Return the seconds of CPU that the server has used since its start."""
        used = self.redis.info("cpu")
        return float(used["used_cpu_sys"] + used["used_cpu_user"])

    def used_bytes(self) -> int:
        """Return the bytes that the data takes."""
        return int(self.redis.info("memory")["used_memory"])

    def calls(self) -> dict[str, int]:
        """Return how often each command was called, those inside scripts among them; our own are left out."""
        stats = self.redis.info("commandstats")
        named = {name.removeprefix("cmdstat_"): counts["calls"] for name, counts in stats.items()}
        return {name: calls for name, calls in named.items() if name not in OWN_COMMANDS}

    def commands(self) -> int:
        """Return how many commands were called, those inside scripts among them."""
        return sum(self.calls().values())

    def reads(self) -> int:
        """Return how often the server read from a connection: a round trip of one that is not longer than 16 KiB."""
        return int(self.redis.info("stats")["total_reads_processed"])

    def close(self) -> None:
        """End it, and remove what it wrote."""
        self.redis.close()
        self._server.close()


def _start(kind: Kind | None, arguments: tuple[str, ...]) -> RedisServer:
    reasons = []
    for candidate in ORDER if kind is None else (kind,):
        try:
            return RedisServer.start(candidate, arguments=arguments)
        except MissingServerError as error:
            reasons.append(str(error))
    raise SystemExit("\n  ".join(["a benchmark needs a Redis or Valkey of its own, and none was found:", *reasons]))


def kind_of(name: str) -> Kind:
    """Return the kind of server that *name* says. Raises ValueError, with the names that there are."""
    kinds = [kind for kind in KINDS if kind != "container"]
    for kind in kinds:
        if kind == name:
            return kind
    raise ValueError(f"{name!r} is none of {', '.join(kinds)}")
