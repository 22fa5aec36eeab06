"""The Redis adapter on a real server, kept apart by its key prefix, with time that can be moved and faults."""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from itertools import count
from typing import Final
from urllib.parse import urlsplit

from msgspec.structs import replace

from dtq.adapters.redis import backend_of, connect
from dtq.adapters.redis.client import Client, Reply, Request
from dtq.adapters.redis.clock import RedisClock
from dtq.adapters.redis.keys import GROUP, Keyspace
from dtq.adapters.redis.link import Link
from dtq.adapters.redis.scripts import ADMIT, COMMIT, TURN, Scripts
from dtq.adapters.redis.trials import needs, rule_of
from dtq.adapters.redis.wire import flat, pairs
from dtq.domain.entry import entry_fields, milliseconds
from dtq.domain.errors import OutcomeUnknown
from dtq.domain.status import Place
from dtq.domain.task import EntryId, QueueName, Receipt, TaskId
from dtq.ports.backend import Backend, BackendOptions
from tests.contract.moved_clock import MovedClock
from tests.servers import RedisServer

_NUMBERS: Final = count(1)

_AGE: Final = """#!lua flags=allow-oom
-- Makes entries that are owned look idle for ARGV[2] milliseconds more (or, if that is negative, not at all), and
-- shortens lifetimes by it. ARGV[1] is the pattern of the keys.
local by = tonumber(ARGV[2])
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  if redis.call('TYPE', key).ok == 'stream' then
    for _, group in ipairs(redis.call('XINFO', 'GROUPS', key)) do
      for _, one in ipairs(redis.call('XPENDING', key, group[2], '-', '+', 100000)) do
        local idle = by < 0 and 0 or one[3] + by
        redis.call('XCLAIM', key, group[2], one[2], 0, one[1], 'IDLE', idle, 'JUSTID')
      end
    end
  end
  local left = redis.call('PTTL', key)
  if left > 0 and by > 0 then redis.call('PEXPIRE', key, left - by) end
end
"""

_STOPS: Final = """
local left = {writes}
local function counted(call)
  local writes = {{XADD=1, XDEL=1, XACK=1, ZADD=1, ZREM=1, ZREMRANGEBYRANK=1, SET=1, HSET=1, HINCRBY=1, PEXPIRE=1,
    SADD=1, PUBLISH=1}}
  return function(name, ...)
    if writes[name] then
      if left == 0 then error({{err = 'ERR stopped by a test'}}) end
      left = left - 1
    end
    return call(name, ...)
  end
end
local server = redis
local redis = {{call = counted(server.call), pcall = server.pcall, acl_check_cmd = server.acl_check_cmd}}
"""
"""Goes before a script: its writes are counted, and the one after the last that is allowed raises."""


class FaultyClient(Client):
    """A client whose next write can be made to go wrong."""

    loses_next_reply = False
    writes_left: int | None = None

    async def send(self, request: Request, *, block: timedelta = timedelta()) -> Reply:
        reply = await super().send(self._stopping(request), block=block)
        if self.loses_next_reply and request.command[0] in {"EVALSHA", "XREADGROUP"}:
            self.loses_next_reply = False
            raise OutcomeUnknown("the reply was lost")
        return reply

    def _stopping(self, request: Request) -> Request:
        command = request.command
        texts = {script.digest: script.text for script in (COMMIT, ADMIT, TURN)}
        if self.writes_left is None or command[0] != "EVALSHA" or command[1] not in texts:
            return request
        first_line, _, rest = texts[str(command[1])].partition("\n")
        text = first_line + _STOPS.format(writes=self.writes_left) + rest
        self.writes_left = None
        return Request(("EVAL", text, *command[2:]))


class RedisHarness:
    """Reaches behind the ports into the server."""

    def __init__(self, url: str, *, options: BackendOptions, adapter_url: str = "") -> None:
        self._options = options
        self._keys = Keyspace(options.key_prefix)
        self._own = Client(url, timeout=options.call_timeout)
        self._client = FaultyClient(adapter_url or url, timeout=options.call_timeout)
        inner = RedisClock()
        self._clock = MovedClock(inner)
        link = Link(
            client=self._client,
            scripts=Scripts(self._client, clock=inner),
            keys=self._keys,
            clock=self._clock,
            options=options,
        )
        self._backend = backend_of(link, sibling=lambda: connect(adapter_url or url, options=options))

    @property
    def backend(self) -> Backend:
        return self._backend

    @property
    def options(self) -> BackendOptions:
        return self._options

    async def advance(self, by: timedelta) -> None:
        await self._age(by // timedelta(milliseconds=1))
        await self._clock.advance(by)

    async def rewind(self) -> None:
        await self._age(-1)

    async def census(self) -> Mapping[Place, set[TaskId]]:
        waiting = [await self._own.call("ZRANGE", key, 0, -1) for key in (self._keys.schedule, self._keys.claimed)]
        entries: dict[Place, set[TaskId]] = {Place.READY: set(), Place.HELD: set()}
        for stream in await self._own.call("KEYS", f"{self._keys.prefix}:stream:*:p?"):
            owned = await self._owned(stream)
            for entry_id, fields in await self._entries(stream):
                entries[Place.HELD if entry_id in owned else Place.READY].add(TaskId(fields.get("task_id", "")))
        letters = await self._entries(self._keys.dead_letters)
        return {
            **entries,
            Place.SCHEDULE: {TaskId(name) for names in waiting for name in names},
            Place.DEAD: {TaskId(fields.get("task_id", "")) for _, fields in letters},
            Place.NOWHERE: set(),
        }

    async def duplicate(self, task_id: TaskId) -> Receipt:
        task = await self._backend.broker.load(task_id)
        if task is None:
            raise ValueError(f"no task {task_id} to duplicate")
        fields = entry_fields(task) | {"payload": task.payload or "{}"}
        return await self.forge(task.queue, priority=task.priority, fields=fields)

    async def forge(self, queue: QueueName, *, priority: int, fields: Mapping[str, str]) -> Receipt:
        entry_id = await self._own.call("XADD", self._keys.stream(queue, priority), "*", *flat(fields))
        return Receipt(queue, priority, EntryId(entry_id))

    async def evict(self, task_id: TaskId) -> None:
        await self._own.call("DEL", self._keys.task(task_id))

    async def orphan(self, task_id: TaskId) -> None:
        for key in (self._keys.schedule, self._keys.claimed):
            await self._own.call("ZREM", key, task_id)
        task = await self._backend.broker.load(task_id)
        if task is not None and task.entry_id is not None:
            stream = self._keys.stream(task.queue, task.priority)
            await self._own.call("XDEL", stream, task.entry_id)
            await self._own.call("XACK", stream, GROUP, task.entry_id)
        if task is not None and task.dlq_entry_id is not None:
            await self._own.call("XDEL", self._keys.dead_letters, task.dlq_entry_id)

    async def unname(self, task_id: TaskId) -> None:
        await self._own.call("HSET", self._keys.task(task_id), "dlq_entry_id", "")

    async def strip(self, task_id: TaskId, *, leaves: str | None = None) -> None:
        record = self._keys.task(task_id)
        await self._own.call(*(("HDEL", record, "payload") if leaves is None else ("HSET", record, "payload", leaves)))

    async def mistime(self, task_id: TaskId, *, at: datetime) -> None:
        for key in (self._keys.schedule, self._keys.claimed):
            await self._own.call("ZADD", key, "XX", milliseconds(at), task_id)

    async def lose_groups(self, queue: QueueName) -> None:
        await self._own.pipeline([("XGROUP", "DESTROY", stream, GROUP) for stream in self._keys.streams(queue)])

    async def disown(self, task_id: TaskId) -> None:
        task = await self._backend.broker.load(task_id)
        if task is not None and task.entry_id is not None:
            await self._own.call("XACK", self._keys.stream(task.queue, task.priority), GROUP, task.entry_id)

    async def spoil(self, queue: QueueName, *, priority: int) -> None:
        await self._own.call("SET", self._keys.stream(queue, priority), "spoiled")

    async def garble(self, task_id: TaskId) -> None:
        await self._own.call("HSET", self._keys.task(task_id), "status", "garbled")

    async def garble_key(self, queue: QueueName, *, key: str) -> None:
        await self._own.call("SET", self._keys.idempotency(queue, key), "garbled", "EX", 86_400)

    async def lose_reply(self) -> None:
        self._client.loses_next_reply = True

    async def stop_after(self, writes: int) -> None:
        self._client.writes_left = writes

    async def fill_memory(self) -> None:
        await self._own.call("CONFIG", "SET", "maxmemory", "1")

    async def free_memory(self) -> None:
        await self._own.call("CONFIG", "SET", "maxmemory", "0")

    async def unbounded(self) -> Sequence[str]:
        keys = await self._all_keys()
        lifetimes = await self._own.pipeline([("PTTL", key) for key in keys])
        return [
            key
            for key, lifetime in zip(keys, lifetimes, strict=True)
            if lifetime == -1 and self._keys.bound_of(key) is None
        ]

    async def close(self) -> None:
        """Leave the server as it was found."""
        await self.free_memory()
        await self._own.pipeline([("DEL", key) for key in await self._all_keys()])
        await self._backend.server.close()
        await self._own.close()

    async def _all_keys(self) -> Sequence[str]:
        keys: Sequence[str] = await self._own.call("KEYS", f"{self._keys.prefix}:*")
        return keys

    async def _age(self, milliseconds: int) -> None:
        await self._own.call("EVAL", _AGE, 0, f"{self._keys.prefix}:*", milliseconds)

    async def _owned(self, stream: str) -> set[EntryId]:
        (listed,) = await self._own.pipeline([("XPENDING", stream, GROUP, "-", "+", 100_000)])
        return {EntryId(entry_id) for entry_id, *_ in listed} if isinstance(listed, list) else set()

    async def _entries(self, stream: str) -> Sequence[tuple[EntryId, Mapping[str, str]]]:
        (found,) = await self._own.pipeline([("XRANGE", stream, "-", "+")])
        return [(EntryId(entry_id), pairs(fields)) for entry_id, fields in found] if isinstance(found, list) else []


@asynccontextmanager
async def open_harness(*, options: BackendOptions, server: RedisServer) -> AsyncIterator[RedisHarness]:
    prefix = f"test-{os.getpid()}-{next(_NUMBERS)}"
    harness = RedisHarness(server.url, options=replace(options, key_prefix=prefix))
    try:
        yield harness
    finally:
        await harness.close()


@asynccontextmanager
async def open_restricted_harness(*, options: BackendOptions, server: RedisServer) -> AsyncIterator[RedisHarness]:
    """Open a harness whose adapter is the user that the documentation shows, and may do nothing else."""
    prefix = f"test-{os.getpid()}-{next(_NUMBERS)}"
    admin = Client(server.url, timeout=options.call_timeout)
    # the test driver stops scripts half-way by sending its own text of them
    await admin.call("ACL", "SETUSER", prefix, *rules_of(prefix), "+eval")
    parts = urlsplit(server.url)
    netloc = f"{prefix}:PASSWORD@{parts.netloc.rpartition('@')[2]}"
    url = parts._replace(netloc=netloc).geturl()
    harness = RedisHarness(server.url, options=replace(options, key_prefix=prefix), adapter_url=url)
    try:
        yield harness
    finally:
        await harness.close()
        await admin.call("ACL", "DELUSER", prefix)
        await admin.close()


def rules_of(prefix: str) -> Sequence[str]:
    """Return the access rules of a user that may do what dtq needs and nothing else, as documented."""
    needed = sorted({f"+{rule_of(command)}" for command in needs(Keyspace(prefix)).values()})
    return "on", ">PASSWORD", "resetkeys", f"~{prefix}:*", "resetchannels", f"&{prefix}:*", "-@all", *needed, "+select"
