"""Everything that is stored, read page by page in pipelines: no command is long, and none of them waits for another."""

from collections.abc import AsyncIterator, Sequence
from typing import Final

from dtq.adapters.redis.client import Rejected, checked
from dtq.adapters.redis.keys import BANDS, GROUP
from dtq.adapters.redis.link import Link
from dtq.adapters.redis.looks import (
    Page,
    at_heartbeat,
    at_key,
    at_member,
    at_name,
    at_queue,
    consumer_fact,
    consumers_of,
    record_of,
    snapshot,
    told,
    with_records,
)
from dtq.adapters.redis.names import Name, name_of
from dtq.adapters.redis.peeking import CHUNK, Range, walk
from dtq.adapters.redis.positions import at_reading
from dtq.adapters.redis.queues import known_queues
from dtq.adapters.redis.scan import scan
from dtq.adapters.redis.tally import count_scheduled
from dtq.adapters.redis.task_pages import LOOKED_AT, TaskPages
from dtq.adapters.redis.trips import looked_at, through
from dtq.domain.facts import Denied, EntryFact, Fact, LetterFact, NameFact, Record, Role, TaskFact
from dtq.domain.task import EntryId, QueueName, Receipt, Task, TaskId, WorkerId

_TYPES: Final = "types and lifetimes of keys"


class Pages:
    """One reading of all, from the first page to the last."""

    def __init__(self, link: Link, *, limit: int) -> None:
        self._link = link
        self._keys = link.keys
        self._limit = limit
        self._queues: set[str] = set()
        self._reads_types = True
        self._tasks = TaskPages(link)

    async def all(self) -> AsyncIterator[Page]:
        """Go through names, queues with their consumers and entries, the schedule, the dead letters and the counts."""
        parts = (
            ("stored names", self._names()),
            ("entries without a record", self._marks()),
            ("the list of queues", self._registered()),
            ("the schedule", self._members(self._keys.schedule)),
            ("tasks on loan", self._members(self._keys.claimed)),
            ("dead letters", self._letters()),
            ("counts of scheduled tasks", count_scheduled(self._link)),
        )
        for what, pages in parts:
            async for page in told(what, pages):
                yield page
        if self._tasks.untold is not None:
            yield [self._tasks.untold]
        async for page in told("how far groups have read, and which streams are used up", self._readings()):
            yield page
        for name in known_queues([*self._queues]):
            async for page in told(f"consumers of {name}", self._consumers(name)):
                yield page
            for priority in BANDS:
                async for page in told(f"entries of {name}, priority {priority}", self._entries(name, priority)):
                    yield page

    async def _names(self) -> AsyncIterator[Page]:
        cursor = "0"
        while True:
            cursor, found = await scan(self._link.client, cursor, prefix=f"{self._keys.prefix}:", limit=self._limit)
            # a few places of the server's table may hold many names
            for first in range(0, len(found), self._limit):
                names = [name_of(self._keys, text) for text in found[first : first + self._limit]]
                yield await self._about(names)
            if cursor == "0":
                return

    async def _about(self, names: Sequence[Name]) -> Page:
        types = await self._types(names)
        there = {one.name for one in types if isinstance(one, NameFact)}
        ids = [name.task_id for name in names if name.task_id is not None]
        facts = await self._tasks.all_of(ids, there=there, tells_types=self._reads_types)
        facts += await looked_at(self._link, [at_heartbeat(self._keys, one.worker) for one in names if one.worker])
        facts += await self._idempotency([name for name in names if name.role is Role.KEY])
        named: dict[str, TaskId | None] = {
            name.queue: None for name in names if name.queue and name.role is Role.BOUNDED
        }
        # a queue that has only tasks which wait for their time has no key of its own
        named |= {task.queue: task.task_id for task in _living(facts)}
        fresh = named.keys() - self._queues
        self._queues |= fresh
        return [
            *with_records(self._keys, types, facts),
            *facts,
            *await looked_at(self._link, [at_queue(self._keys, one, waiting=named[one]) for one in sorted(fresh)]),
        ]

    async def _types(self, names: Sequence[Name]) -> list[Fact | Denied]:
        if not self._reads_types:
            return []
        try:
            return [*await looked_at(self._link, [at_name(self._keys, name) for name in names])]
        except Rejected as error:
            self._reads_types = False
            return [Denied(_TYPES, str(error))]

    async def _idempotency(self, names: Sequence[Name]) -> Sequence[Fact]:
        texts = await through(self._link, [("GET", name.text) for name in names])
        looks = [
            at_key(self._keys, name.queue or QueueName(""), name.key or "", text=text)
            for name, text in zip(names, texts, strict=True)
            if isinstance(text, str)
        ]
        return await looked_at(self._link, looks)

    async def _marks(self) -> AsyncIterator[Page]:
        """Ask whether cancel marks can be read: an entry that was cancelled is not stored again."""
        await self._link.client.call("SISMEMBER", self._keys.cancelled, "")
        yield ()

    async def _registered(self) -> AsyncIterator[Page]:
        names = await self._link.client.call("HKEYS", self._keys.queues)
        fresh = sorted(set(names) - self._queues)
        self._queues |= set(names)
        for first in range(0, len(fresh), CHUNK):
            yield await looked_at(self._link, [at_queue(self._keys, name) for name in fresh[first : first + CHUNK]])

    async def _readings(self) -> AsyncIterator[Page]:
        for name in known_queues([*self._queues]):
            yield await looked_at(self._link, [at_reading(self._keys, name)])

    async def _consumers(self, queue: QueueName) -> AsyncIterator[Page]:
        streams = self._keys.streams(queue)
        found = consumers_of(await through(self._link, [("XINFO", "CONSUMERS", stream, GROUP) for stream in streams]))
        workers = sorted({WorkerId(one["name"]) for one in found})
        known = {
            worker
            for command in ("SISMEMBER", "EXISTS")
            for worker, reply in zip(
                workers, await through(self._link, [self._is_known(command, worker) for worker in workers]), strict=True
            )
            if checked(reply) == 1
        }
        yield [
            consumer_fact(queue, worker, [one for one in found if one["name"] == worker], is_known=worker in known)
            for worker in workers
        ]

    def _is_known(self, command: str, worker: WorkerId) -> Sequence[str]:
        if command == "EXISTS":
            return (command, self._keys.worker(worker))
        return (command, self._keys.workers, worker)

    async def _entries(self, queue: QueueName, priority: int) -> AsyncIterator[Page]:
        stream = self._keys.stream(queue, priority)
        async for chunk in walk(self._link, Range(stream), records=False, chunk=LOOKED_AT):
            unknown = [one for one in chunk if not self._tasks.is_own(stream, one.entry_id)]
            records = await self._records([one.task_id for one in unknown])
            yield [
                EntryFact(receipt=Receipt(queue, priority, one.entry_id), task_id=one.task_id, record=record)
                for one, record in zip(unknown, records, strict=True)
            ]

    async def _letters(self) -> AsyncIterator[Page]:
        async for chunk in walk(self._link, Range(self._keys.dead_letters), records=False, chunk=LOOKED_AT):
            records = await self._records([one.task_id for one in chunk])
            yield [
                LetterFact(entry_id=EntryId(one.entry_id), task_id=one.task_id, record=record)
                for one, record in zip(chunk, records, strict=True)
            ]

    async def _records(self, ids: Sequence[TaskId]) -> Sequence[Record]:
        # not by the script that looks at the entries: it would hold the server for as long as it reads records
        replies = await through(self._link, [snapshot(self._keys, task_id) for task_id in ids])
        return [record_of(reply, task_id) for task_id, reply in zip(ids, replies, strict=True)]

    async def _members(self, name: str) -> AsyncIterator[Page]:
        first = 0
        while ids := await self._link.client.call("ZRANGE", name, first, first + self._limit - 1):
            yield await looked_at(self._link, [at_member(self._keys, TaskId(one)) for one in ids])
            first += len(ids)


def _living(facts: Sequence[Fact]) -> list[Task]:
    tasks = [one.record.task for one in facts if isinstance(one, TaskFact)]
    return [task for task in tasks if task is not None and not task.is_terminal]
