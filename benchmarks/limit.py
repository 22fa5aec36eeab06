"""The design of dtq with everything left out but what moves a task: what a drain could reach at best.

A task is an entry of one of ten streams and a record; a worker fetches as many entries as it has free slots, records
in one step that they start, runs them, and records in one step that they have ended, their entries removed. There are
no events, metrics, logs, deadlines, leases, retries, lifetimes or limits. It knows nothing of the rest of the project,
so that it runs wherever redis, hiredis and msgspec are installed: `python limit.py --url URL MODULE:FUNCTION`.
"""

import argparse
import asyncio
import importlib
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha1
from typing import Any, Final

import msgspec
from hiredis import pack_command
from redis.asyncio.connection import AbstractConnection, Connection, parse_url
from redis.exceptions import ResponseError

PREFIX: Final = "limit"
GROUP: Final = "workers"
STREAMS: Final = tuple(f"{PREFIX}:p{priority}" for priority in range(9, -1, -1))
DEFAULT: Final = STREAMS[4]
BLOCK_MS: Final = 500

CREATE: Final = """
for _, one in ipairs(cmsgpack.unpack(ARGV[1])) do
  local record = ARGV[2] .. one[1]
  redis.call('HSET', record, 'version', one[2], 'status', 'Q', 'payload', one[3])
  redis.call('XADD', KEYS[1], '*', 'task_id', one[1], 'payload', one[3])
end
return 1"""

FETCH: Final = """
local room, entries = tonumber(ARGV[3]), {}
for band = 1, #KEYS do
  if room <= 0 then break end
  local found = redis.call('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', room, 'STREAMS', KEYS[band], '>')
  for _, entry in ipairs(found and found[1][2] or {}) do
    local id = entry[2][2]
    entries[#entries + 1] = {band, entry[1], id, entry[2][4], redis.call('HGET', ARGV[4] .. id, 'version')}
    room = room - 1
  end
end
return entries"""

START: Final = """
local made = {}
for number, one in ipairs(cmsgpack.unpack(ARGV[1])) do
  local record = ARGV[2] .. one[1]
  made[number] = redis.call('HGET', record, 'version') == one[2] and 1 or 0
  if made[number] == 1 then
    redis.call('HSET', record, 'version', one[3], 'status', 'R', 'worker', ARGV[3], 'attempt', 1)
  end
end
return made"""

FINISH: Final = """
local made = {}
for number, one in ipairs(cmsgpack.unpack(ARGV[1])) do
  local record = ARGV[2] .. one[1]
  made[number] = redis.call('HGET', record, 'version') == one[2] and 1 or 0
  if made[number] == 1 then
    redis.call('HSET', record, 'version', one[3], 'status', 'S', 'result', one[6])
    redis.call('XACK', KEYS[one[4]], ARGV[3], one[5])
    redis.call('XDEL', KEYS[one[4]], one[5])
  end
end
return made"""

Handler = Callable[[dict[str, Any]], Awaitable[object]]
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode
_encode: Final = msgspec.msgpack.Encoder().encode


def token() -> str:
    """Return text that nobody else has."""
    return os.urandom(16).hex()


class Line:
    """One connection, used by one request at a time."""

    def __init__(self, url: str) -> None:
        self._connection: AbstractConnection = Connection(**parse_url(url), decode_responses=True)
        self._digests: dict[str, str] = {}
        self._turn = asyncio.Lock()

    async def call(self, *command: str | bytes | int) -> Any:
        """Run a command and return its reply."""
        async with self._turn:
            packed = pack_command(command)  # type: ignore[arg-type]  # hiredis' annotation allows for one word only
            await self._connection.send_packed_command([packed], check_health=False)
            return await self._connection.read_response()

    async def run(self, script: str, keys: Sequence[str], *arguments: str | bytes | int) -> Any:
        """Run a script, which the server is told once."""
        if script not in self._digests:
            await self.call("SCRIPT", "LOAD", script)
            self._digests[script] = sha1(script.encode(), usedforsecurity=False).hexdigest()
        return await self.call("EVALSHA", self._digests[script], len(keys), *keys, *arguments)

    async def open(self) -> None:
        """Connect, and make what a worker reads from."""
        await self._connection.connect()  # type: ignore[no-untyped-call]  # redis-py has no annotation there
        for stream in STREAMS:
            try:
                await self.call("XGROUP", "CREATE", stream, GROUP, "0", "MKSTREAM")
            except ResponseError as error:
                if not str(error).startswith("BUSYGROUP"):
                    raise

    async def create(self, payloads: Sequence[str]) -> None:
        """Create a task of each payload, in one step."""
        tasks = [(token(), token(), payload) for payload in payloads]
        await self.run(CREATE, [DEFAULT], _encode(tasks), f"{PREFIX}:task:")

    async def close(self) -> None:
        """Let go of the connection."""
        await self._connection.disconnect()


class Worker:
    """Runs up to *concurrency* tasks at a time until it is stopped."""

    def __init__(self, url: str, *, handler: Handler, concurrency: int) -> None:
        self._fetching, self._committing = Line(url), Line(url)
        self._handler = handler
        self._free = concurrency
        self._name = token()
        self._ended: list[tuple[str, str, str, int, str, str]] = []
        self._has_room, self._has_ended = asyncio.Event(), asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Work until canceled."""
        await self._fetching.open()
        await self._committing.open()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._poll())
            group.create_task(self._settle())

    async def _poll(self) -> None:
        while True:
            while self._free == 0:
                self._has_room.clear()
                await self._has_room.wait()
            entries = await self._fetching.run(FETCH, STREAMS, GROUP, self._name, self._free, f"{PREFIX}:task:")
            entries = entries or await self._wait()
            if entries:
                await self._start(entries)

    async def _wait(self) -> list[Any]:
        command = ("XREADGROUP", "GROUP", GROUP, self._name, "COUNT", 1, "BLOCK", BLOCK_MS, "STREAMS")
        found = await self._fetching.call(*command, *STREAMS, *(">" for _ in STREAMS))
        entries = []
        for stream, listed in found.items() if isinstance(found, dict) else found or ():
            for entry_id, fields in listed:
                version = await self._fetching.call("HGET", f"{PREFIX}:task:{fields[1]}", "version")
                entries.append((STREAMS.index(stream) + 1, entry_id, fields[1], fields[3], version))
        return entries

    async def _start(self, entries: Sequence[Any]) -> None:
        self._free -= len(entries)
        starts = [(task_id, version, token()) for _, _, task_id, _, version in entries]
        made = await self._fetching.run(START, [], _encode(starts), f"{PREFIX}:task:", self._name)
        for (band, entry_id, task_id, payload, _), (_, _, version), is_made in zip(entries, starts, made, strict=True):
            if not is_made:
                raise RuntimeError(f"task {task_id!r} has another version than the one that was fetched")
            running = asyncio.create_task(self._one(band, entry_id, task_id, payload, version))
            self._running.add(running)
            running.add_done_callback(self._running.discard)

    async def _one(self, band: int, entry_id: str, task_id: str, payload: str, version: str) -> None:
        result = await self._handler(_decode(payload))
        text = msgspec.json.encode(result).decode()
        self._ended.append((task_id, version, token(), band, entry_id, text))
        self._has_ended.set()

    async def _settle(self) -> None:
        while True:
            while not self._ended:
                self._has_ended.clear()
                await self._has_ended.wait()
            ended, self._ended = self._ended, []
            made = await self._committing.run(FINISH, STREAMS, _encode(ended), f"{PREFIX}:task:", GROUP)
            if not all(made):
                raise RuntimeError("a task has another version than the one that was started")
            self._free += len(ended)
            self._has_room.set()


async def _work(arguments: argparse.Namespace) -> None:
    module, _, name = arguments.handler.partition(":")
    handler = getattr(importlib.import_module(module), name)
    worker = Worker(arguments.url, handler=handler, concurrency=arguments.concurrency)
    working = asyncio.ensure_future(worker.run())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, working.cancel)
    await working


def main() -> None:
    """Work until SIGTERM, on uvloop where it is installed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("handler", help="MODULE:FUNCTION, a coroutine function that takes a payload")
    parser.add_argument("--url", required=True)
    parser.add_argument("--concurrency", type=int, default=10)
    try:
        uvloop = importlib.import_module("uvloop")
    except ImportError:
        factory = None
    else:
        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        try:
            runner.run(_work(parser.parse_args()))
        except asyncio.CancelledError:
            return


if __name__ == "__main__":
    main()
