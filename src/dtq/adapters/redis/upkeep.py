"""The leader's sweeps."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import msgpack

from dtq.adapters.redis.client import Rejected, Reply
from dtq.adapters.redis.codec import SNAPSHOT
from dtq.adapters.redis.envelope import Command, Envelope, Step, among, below
from dtq.adapters.redis.guards import NONE, ONE, has_version, names_task
from dtq.adapters.redis.keys import BANDS, GROUP
from dtq.adapters.redis.link import Link
from dtq.adapters.redis.peeking import CHUNK, Range, own_task, peek, walk
from dtq.adapters.redis.scan import scan
from dtq.adapters.redis.scripts import SUSPECTS
from dtq.adapters.redis.steps import milliseconds_text
from dtq.adapters.redis.store import is_of_another_type, read_many, readable, sound
from dtq.adapters.redis.wire import pairs
from dtq.domain.entry import milliseconds
from dtq.domain.errors import BrokerUnavailable
from dtq.domain.retention import record_lifetime, task_lifetime
from dtq.domain.status import HOMES, TERMINAL, Place, TaskStatus
from dtq.domain.task import EntryId, QueueName, Receipt, Task, TaskId, place_of

_IS_SCHEDULED: Final = msgpack.encode(
    {status.value: HOMES[status] is Place.SCHEDULE for status in TaskStatus if status not in TERMINAL}
)


class RedisUpkeep:
    """Sweeps on Redis."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def strays(self, cursor: str, *, limit: int) -> tuple[str, Sequence[Task]]:
        prefix = self._link.keys.task_prefix
        following, names = await scan(self._link.client, cursor or "0", prefix=prefix, limit=limit)
        suspects = [
            name for first in range(0, len(names), CHUNK) for name in await self._suspects(names[first : first + CHUNK])
        ]
        ids = [TaskId(name.removeprefix(prefix)) for name in suspects]
        records = zip(ids, await read_many(self._link, ids, SNAPSHOT), strict=True)
        found = [readable(values, task_id=task_id) for task_id, values in records]
        living = [task for task in found if task is not None and not task.is_terminal]
        strays = [task for task, homeless in zip(living, await self._homeless(living), strict=True) if homeless]
        return ("" if following == "0" else following), strays

    async def _suspects(self, records: Sequence[str]) -> Sequence[str]:
        """Return the records of which a first look, that reads little, does not see that their tasks have a place."""
        keys = self._link.keys
        named = (keys.schedule, keys.claimed, *records)
        numbers = await self._link.scripts.run(SUSPECTS, keys=named, arguments=(*keys.around_queue, _IS_SCHEDULED))
        return [named[number - 1] for number in numbers]

    async def _homeless(self, tasks: Sequence[Task]) -> Sequence[bool]:
        keys = self._link.keys
        ranges = [_entry_range(keys.stream(task.queue, task.priority), task.entry_id) for task in tasks]
        missing = await self._missing(ranges)
        due = await self._link.client.pipeline([("ZSCORE", keys.schedule, task.task_id) for task in tasks])
        claimed = await self._link.client.pipeline([("ZSCORE", keys.claimed, task.task_id) for task in tasks])
        return [
            due[number] is claimed[number] is None if place_of(task) is Place.SCHEDULE else number in missing
            for number, task in enumerate(tasks)
        ]

    async def _missing(self, ranges: Sequence[Range]) -> Collection[int]:
        """Number the ranges that no entry is in.

        Of a priority that cannot be read nobody can say who is missing, and nothing could be added to it.
        """
        try:
            return await self._missing_of(dict(enumerate(ranges)))
        except Rejected as error:
            if not is_of_another_type(error):
                raise
        streams = await sound(self._link, sorted({one.stream for one in ranges}))
        return await self._missing_of({number: one for number, one in enumerate(ranges) if one.stream in streams})

    async def _missing_of(self, ranges: Mapping[int, Range]) -> Collection[int]:
        numbers = list(ranges)
        found = await peek(self._link, list(ranges.values()), limit=len(ranges), records=False)
        return ranges.keys() - {numbers[entry.number] for entry in found}

    async def keep_alive(
        self, queue: QueueName, *, cursor: str, waiting_since: datetime, limit: int
    ) -> tuple[str, int]:
        first, _, begin = (cursor or f"{BANDS[0]} -").partition(" ")
        end, left, renewed = str(milliseconds(waiting_since) - 1), limit, 0
        streams = await sound(self._link, self._link.keys.streams(queue))
        for priority in BANDS[BANDS.index(int(first)) :]:
            stream = self._link.keys.stream(queue, priority)
            is_over = stream not in streams
            while left and not is_over:
                asked = min(left, CHUNK)
                chunk = await peek(self._link, [Range(stream, begin, end)], limit=asked, records=True)
                tasks = [own_task(entry, Receipt(queue, priority, entry.entry_id)) for entry in chunk]
                renewed += await self._renew([task for task in tasks if task is not None])
                begin = f"({chunk[-1].entry_id}" if chunk else begin
                left, is_over = left - len(chunk), len(chunk) < asked
            if not left:
                return f"{priority} {begin}", renewed
            begin = "-"
        return "", renewed

    async def _renew(self, tasks: Sequence[Task]) -> int:
        keys, retention, at = self._link.keys, self._link.options.retention, self._link.clock.now()

        def renew(envelope: Envelope, task: Task) -> None:
            record = envelope.key(keys.task(task.task_id))
            lifetime = task_lifetime(task, at=at, retention=retention)
            steps: list[Step] = [(("PEXPIRE", record, envelope.text(milliseconds_text(lifetime))),)]
            if task.idempotency_key is not None:
                key = envelope.key(keys.idempotency(task.queue, task.idempotency_key))
                lifetime = record_lifetime(task, at=at, retention=retention)
                command = ("PEXPIRE", key, envelope.text(milliseconds_text(lifetime)))
                steps.append((command, names_task(envelope, key, task.task_id)))
            # one that has ended meanwhile has the exact lifetime of an ended task
            guard = has_version(envelope, keys, task, task_id=task.task_id)
            envelope.add(guards=[guard], steps=steps)

        return (await self._link.act_on(tasks, renew)).count("1")

    async def drop_consumers(self, queue: QueueName, *, alive: Collection[str]) -> int:
        streams = self._link.keys.streams(queue)
        replies = await self._link.client.pipeline([("XINFO", "CONSUMERS", stream, GROUP) for stream in streams])
        homes: dict[str, list[str]] = {}
        for stream, reply in zip(streams, replies, strict=True):
            for name in _consumers(reply):
                homes.setdefault(name, []).append(stream)
        silent = [(name, known_in) for name, known_in in homes.items() if name not in alive]

        def drop(envelope: Envelope, consumer: tuple[str, list[str]]) -> None:
            name, known_in = consumer
            numbers = [envelope.key(stream) for stream in known_in]
            envelope.add(
                guards=[among(NONE, ("XPENDING", stream, GROUP, "-", "+", "1", name)) for stream in numbers],
                steps=[(("XGROUP", "DELCONSUMER", stream, GROUP, name),) for stream in numbers],
            )

        outcomes = await self._link.act_on(silent, drop)
        return len(outcomes) - outcomes.count(None)

    async def retire(self, queue: QueueName) -> bool:
        keys = self._link.keys
        count = await self._link.client.call("HGET", keys.queues, queue)

        def forget(envelope: Envelope) -> None:
            registry = envelope.key(keys.queues)
            streams = [envelope.key(stream) for stream in keys.streams(queue)]
            waiting = [("ZCARD", envelope.key(name)) for name in (keys.schedule, keys.claimed)]
            guards = [
                among(ONE, ("HEXISTS", registry, queue)),
                among(NONE, ("EXISTS", envelope.key(keys.paused(queue)))),
                below(1, [("XLEN", stream) for stream in streams]),
                # a count that an id left behind, which was dropped without its task, is void when nothing waits at all
                among(NONE, ("HGET", registry, queue)) if count == "0" else below(1, waiting),
            ]
            delete: Command = ("DEL", *streams)
            envelope.add(guards=guards, steps=[(delete,), (("HDEL", registry, queue),)])

        return await self._link.act(forget) is not None

    async def drop_marks(self, *, limit: int) -> int:
        keys = self._link.keys
        marked = set(await self._link.client.call("SRANDMEMBER", keys.cancelled, limit))
        for queue in await self._link.client.call("HKEYS", keys.queues) if marked else ():
            for stream in await sound(self._link, keys.streams(queue)):
                async for chunk in walk(self._link, Range(stream), records=False):
                    marked -= {entry.task_id for entry in chunk}
        return int(await self._link.client.call("SREM", keys.cancelled, *marked)) if marked else 0


def _entry_range(stream: str, entry_id: EntryId | None) -> Range:
    # an id that is missing finds nothing, as the lowest one does
    wanted = entry_id or "0-1"
    return Range(stream, wanted, wanted)


def _consumers(reply: Reply) -> Sequence[str]:
    """Read the names of the consumers that own nothing and of those that do; none where the group is gone."""
    return () if isinstance(reply, BrokerUnavailable) else [pairs(consumer)["name"] for consumer in reply]
