"""What the server says of itself, and whether it lets dtq do its work."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Final

from msgspec import msgpack

from dtq.adapters.redis.client import Rejected
from dtq.adapters.redis.keys import Keyspace
from dtq.adapters.redis.link import Link
from dtq.adapters.redis.scripts import PERMITS
from dtq.adapters.redis.trials import needs, rule_of, trials
from dtq.adapters.system import SystemClock
from dtq.domain.entry import moment
from dtq.domain.errors import UnsuitableBroker
from dtq.ports.environment import ServerFacts

LOWEST_REDIS: Final = (7, 0)
LOWEST_VALKEY: Final = (8, 0)

_FORBIDDING: Final = frozenset({"NOPERM", "ERR"})
"""How a server's refusal begins that no repeat will change."""

_FORBIDDEN: Final = "the broker does not let this user do what dtq needs: "

_SECTIONS: Final = ("server", "memory", "persistence", "replication", "cluster")


class RedisServer:
    """One Redis or Valkey server."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._host = SystemClock()

    async def inspect(self) -> ServerFacts:
        info = await self._info()
        seconds, microseconds = await self._link.client.call("TIME")
        now = moment(int(seconds) * 1000 + int(microseconds) // 1000)
        offset = now - self._host.now()
        is_primary = _is_primary(info)
        # a replica refuses the very script that asks
        refusals = await self._refusals() if is_primary else ()
        return ServerFacts(
            description=f"{_family(info)} {_version_text(info)}",
            uptime=timedelta(seconds=int(info.get("uptime_in_seconds", "0"))),
            host_offset=offset,
            problems=(*unusable(info, self._link.keys), *memory_problems(info), *refusals),
            warnings=tuple(persistence_warnings(info)),
            is_primary=is_primary,
        )

    async def prepare(self) -> None:
        keys = self._link.keys
        try:
            problems = [*unusable(await self._info(), keys)]
            if problems:
                raise UnsuitableBroker("; ".join(problems))
            await self._try_scripts()
            problems = [*await self._refusals()]
            if problems:
                raise UnsuitableBroker("; ".join(problems))
            await self._try_commands()
            async with self._link.client.subscribe(keys.scratch("channel")):
                pass
        except Rejected as error:
            if error.reply_code in _FORBIDDING:
                raise UnsuitableBroker(f"{_FORBIDDEN}{error}") from error
            raise

    async def close(self) -> None:
        await self._link.client.close()

    async def _info(self) -> Mapping[str, str]:
        text = await self._link.client.call("INFO", *_SECTIONS)
        return dict(re.findall(r"^([a-z_]+):(.*?)\r?$", text, re.MULTILINE))

    async def _try_scripts(self) -> None:
        await self._link.scripts.load()
        await self._link.act(lambda envelope: envelope.add(steps=[(("TIME",),)]))

    async def _refusals(self) -> Sequence[str]:
        """Ask for everything that dtq must be permitted; access rules may change at any time."""
        wanted = needs(self._link.keys)
        arguments = (msgpack.encode([*wanted.values()]),)
        try:
            numbers = await self._link.scripts.run(PERMITS, keys=(), arguments=arguments)
        except Rejected as error:
            if error.reply_code in _FORBIDDING:
                return (f"{_FORBIDDEN}{error}",)
            raise
        names = [*wanted]
        refused = [names[number - 1] for number in numbers]
        # an example of a key or a channel says nothing where the command that it is tried with is refused itself
        told = [name for name in refused if name == rule_of(wanted[name]) or rule_of(wanted[name]) not in refused]
        where = f" (on keys and channels that begin with {self._link.keys.prefix}:)"
        return (_FORBIDDEN + ", ".join(told) + where,) if told else ()

    async def _try_commands(self) -> None:
        """Run every kind of command that dtq uses, in one step that leaves nothing behind."""
        keys, commands = trials(self._link.keys)
        replies = await self._link.run(commands, keys=keys)
        tried = zip(commands, replies, strict=True)
        refusals = [f"{command[0]} ({reply})" for command, reply in tried if isinstance(reply, Rejected)]
        if refusals:
            text = ", ".join(dict.fromkeys(refusals))
            raise UnsuitableBroker(f"{_FORBIDDEN}{text}")


def unusable(info: Mapping[str, str], keys: Keyspace) -> Iterator[str]:
    """Name what keeps dtq from working on this server at all."""
    lowest = LOWEST_VALKEY if "valkey_version" in info else LOWEST_REDIS
    if _version(info) < lowest:
        needed = f"{_family(info)} {lowest[0]}.{lowest[1]}"
        yield f"the broker is {_family(info)} {_version_text(info)}; dtq needs {needed} or newer"
    if info.get("cluster_enabled") == "1" and not keys.is_one_slot:
        tagged = f"{{{keys.prefix}}}"
        yield f"the broker is a cluster: give DTQ_KEY_PREFIX a hash tag, such as {tagged}, which keeps all in one slot"
    if not _is_primary(info):
        yield "the broker is a replica: dtq needs the primary"


def memory_problems(info: Mapping[str, str]) -> Iterator[str]:
    """Name what may make accepted work vanish."""
    policy = info.get("maxmemory_policy", "noeviction")
    if info.get("maxmemory", "0") != "0" and policy != "noeviction":
        yield f"the broker may evict tasks when its memory is full: set maxmemory-policy noeviction instead of {policy}"


def persistence_warnings(info: Mapping[str, str]) -> Iterator[str]:
    """Name what a crash of the server would lose."""
    if info.get("aof_enabled") == "0":
        yield "the broker's append-only file is off: its crash loses what it accepted since the last snapshot"
    if info.get("aof_last_write_status", "ok") != "ok":
        yield "the broker failed to write its append-only file"
    if info.get("rdb_last_bgsave_status", "ok") != "ok":
        yield "the broker failed to write its last snapshot"


def _is_primary(info: Mapping[str, str]) -> bool:
    return info.get("role", "master") == "master"


def _family(info: Mapping[str, str]) -> str:
    return "Valkey" if "valkey_version" in info else "Redis"


def _version_text(info: Mapping[str, str]) -> str:
    return info.get("valkey_version") or info.get("redis_version", "0.0")


def _version(info: Mapping[str, str]) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", _version_text(info))[:2])
