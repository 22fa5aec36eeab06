"""Everything that is stored, read page by page in pipelines: no command is long, and none of them waits for another."""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final

from dtq.adapters.redis.client import Rejected, Reply, checked
from dtq.adapters.redis.keys import BANDS, GROUP
from dtq.adapters.redis.link import Link
from dtq.adapters.redis.looks import (
    Look,
    Page,
    at_heartbeat,
    at_key,
    at_member,
    at_name,
    at_queue,
    consumer_fact,
    consumers_of,
    last_delivered,
    record_of,
    snapshot,
    told,
    why,
    with_records,
)
from dtq.adapters.redis.names import Name, name_of
from dtq.adapters.redis.peeking import CHUNK, Range, peek, walk
from dtq.adapters.redis.positions import at_reading
from dtq.adapters.redis.queues import known_queues
from dtq.adapters.redis.store import is_of_another_type, sound
from dtq.adapters.redis.survey import TRIP
from dtq.adapters.redis.tally import count_scheduled
from dtq.adapters.redis.task_looks import (
    at_keys_of_others,
    completed,
    is_missing,
    kept_with,
    may_be_trimmed,
    oldest_letter,
    spoiled,
    task_fact,
)
from dtq.adapters.redis.upkeep import literal
from dtq.domain.facts import Denied, EntryFact, Fact, LetterFact, NameFact, Record, Role, TaskFact
from dtq.domain.status import Place
from dtq.domain.task import EntryId, QueueName, Receipt, Task, TaskId, WorkerId, place_of

LOOKED_AT: Final = 40
"""How many entries one script looks at: fewer than a sweep takes, since a walk through everything is in no hurry."""

_REMEMBERED: Final = 200_000
_TYPES: Final = "types and lifetimes of keys"
_TRIMS: Final = "dead letters older than the oldest that is left"


class Pages:
    """One reading of all, from the first page to the last."""

    def __init__(self, link: Link, *, limit: int) -> None:
        self._link = link
        self._keys = link.keys
        self._limit = limit
        self._queues: set[str] = set()
        self._reads_types = True
        self._untold: Denied | None = None
        self._standing_entries: set[tuple[str, EntryId]] = set()

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
        if self._untold is not None:
            yield [self._untold]
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
            pattern = f"{literal(self._keys.prefix)}:*"
            cursor, found = await self._link.client.call("SCAN", cursor, "MATCH", pattern, "COUNT", self._limit)
            # a few places of the server's table may hold many names
            for first in range(0, len(found), self._limit):
                names = [name_of(self._keys, text) for text in found[first : first + self._limit]]
                yield await self._about(names)
            if cursor == "0":
                return

    async def _about(self, names: Sequence[Name]) -> Page:
        types = await self._types(names)
        there = {one.name for one in types if isinstance(one, NameFact)}
        facts = await self._tasks([name.task_id for name in names if name.task_id is not None], there)
        facts += await self._looked_at(at_heartbeat(self._keys, one.worker) for one in names if one.worker)
        facts += await self._idempotency([name for name in names if name.role is Role.KEY])
        fresh = {name.queue for name in names if name.queue and name.role is Role.BOUNDED} - self._queues
        self._queues |= fresh
        return [
            *with_records(self._keys, types, facts),
            *facts,
            *await self._looked_at(at_queue(self._keys, queue) for queue in sorted(fresh)),
        ]

    async def _types(self, names: Sequence[Name]) -> list[Fact | Denied]:
        if not self._reads_types:
            return []
        try:
            return [*await self._looked_at(at_name(self._keys, name) for name in names)]
        except Rejected as error:
            self._reads_types = False
            return [Denied(_TYPES, str(error))]

    async def _tasks(self, ids: Sequence[TaskId], there: set[str]) -> list[Fact]:
        tasks: list[Task] = []
        facts: list[Fact] = []
        replies = await self._through([snapshot(self._keys, task_id) for task_id in ids])
        for task_id, reply in zip(ids, replies, strict=True):
            record = record_of(reply, task_id)
            fault = None if record.task else spoiled(task_id, record, exists=self._keys.task(task_id) in there)
            if is_of_another_type(reply) and self._reads_types:
                # told of by its name
                continue
            tasks += [record.task] if record.task else []
            facts += [fault] if fault else []
        return [*facts, *await self._places(tasks)]

    async def _places(self, tasks: Sequence[Task]) -> Sequence[Fact]:
        keys = self._keys
        kept = await self._through([question for task in tasks for question in kept_with(keys, task)])
        waiting = [task for task in tasks if place_of(task) is Place.SCHEDULE]
        due = await self._through([("ZSCORE", keys.schedule, task.task_id) for task in waiting])
        claimed = await self._through([("ZSCORE", keys.claimed, task.task_id) for task in waiting])
        facts = [
            TaskFact(task_id=task.task_id, record=Record(task), scheduled=not (one is other is None))
            for task, one, other in zip(waiting, due, claimed, strict=True)
        ]
        facts += await self._in_streams([task for task in tasks if place_of(task) in {Place.READY, Place.HELD}])
        facts += await self._dead([task for task in tasks if place_of(task) is Place.DEAD])
        others = await self._looked_at(at_keys_of_others(keys, tasks=tasks, kept=kept))
        return completed(facts, tasks=tasks, kept=kept, others=others)

    async def _in_streams(self, tasks: Sequence[Task]) -> Sequence[TaskFact]:
        keys = self._keys
        homes = [keys.stream(task.queue, task.priority) for task in tasks]
        streams = sorted(set(homes))
        groups = await self._through([("XINFO", "GROUPS", stream) for stream in streams])
        delivered = dict(zip(streams, map(last_delivered, groups), strict=True))
        ids = [task.entry_id or "0-1" for task in tasks]
        pending = await self._pending(homes, ids, read={stream for stream, last in delivered.items() if last})
        standing = await self._standing([Range(stream, one, one) for stream, one in zip(homes, ids, strict=True)])
        self._remember({(homes[number], EntryId(ids[number])) for number in standing})
        return [
            task_fact(task, entered=number in standing, pending=pending[number], delivered=delivered[homes[number]])
            for number, task in enumerate(tasks)
        ]

    async def _pending(self, homes: Sequence[str], ids: Sequence[str], *, read: set[str]) -> Sequence[Reply]:
        """Ask who owns entries; of a stream without a group nobody does, and its refusal would cost a connection."""
        asked = [(stream, one) for stream, one in zip(homes, ids, strict=True) if stream in read]
        owners = iter(await self._through([("XPENDING", stream, GROUP, one, one, "1") for stream, one in asked]))
        return [next(owners) if stream in read else () for stream in homes]

    def _remember(self, entries: set[tuple[str, EntryId]]) -> None:
        """Keep in mind which entries are their tasks' own: most of them are, and their records are read already."""
        if len(self._standing_entries) < _REMEMBERED:
            self._standing_entries |= entries

    async def _dead(self, tasks: Sequence[Task]) -> Sequence[TaskFact]:
        if not tasks:
            return ()
        first, state = await self._link.client.pipeline(oldest_letter(self._keys))
        if isinstance(state, Rejected) and not is_missing(state):
            self._untold = Denied(_TRIMS, why(state))
        ids = [task.dlq_entry_id or "0-1" for task in tasks]
        standing = await self._standing([Range(self._keys.dead_letters, one, one) for one in ids])
        limit = self._link.options.dead_letter_limit
        return [
            TaskFact(
                task_id=task.task_id,
                record=Record(task),
                lettered=number in standing,
                trimmed=may_be_trimmed(task, first, state, limit=limit),
            )
            for number, task in enumerate(tasks)
        ]

    async def _standing(self, ranges: Sequence[Range]) -> set[int]:
        """Return the numbers of those ranges of one entry that hold it."""
        streams = await sound(self._link, sorted({one.stream for one in ranges}))
        # what cannot be read is told of as that, and not as empty
        found = {number for number, one in enumerate(ranges) if one.stream not in streams}
        numbers = [number for number, one in enumerate(ranges) if one.stream in streams]
        for first in range(0, len(numbers), LOOKED_AT):
            part = numbers[first : first + LOOKED_AT]
            seen = await peek(self._link, [ranges[one] for one in part], limit=len(part), records=False)
            found |= {part[entry.number] for entry in seen}
        return found

    async def _idempotency(self, names: Sequence[Name]) -> Sequence[Fact]:
        texts = await self._through([("GET", name.text) for name in names])
        return await self._looked_at(
            at_key(self._keys, name.queue or QueueName(""), name.key or "", text=text)
            for name, text in zip(names, texts, strict=True)
            if isinstance(text, str)
        )

    async def _marks(self) -> AsyncIterator[Page]:
        """Ask whether cancel marks can be read: an entry that was cancelled is not stored again."""
        await self._link.client.call("SISMEMBER", self._keys.cancelled, "")
        yield ()

    async def _registered(self) -> AsyncIterator[Page]:
        names = await self._link.client.call("HKEYS", self._keys.queues)
        fresh = sorted(set(names) - self._queues)
        self._queues |= set(names)
        for first in range(0, len(fresh), CHUNK):
            yield await self._looked_at(at_queue(self._keys, name) for name in fresh[first : first + CHUNK])

    async def _readings(self) -> AsyncIterator[Page]:
        for name in known_queues([*self._queues]):
            yield await self._looked_at([at_reading(self._keys, name)])

    async def _consumers(self, queue: QueueName) -> AsyncIterator[Page]:
        streams = self._keys.streams(queue)
        found = consumers_of(await self._through([("XINFO", "CONSUMERS", stream, GROUP) for stream in streams]))
        workers = sorted({WorkerId(one["name"]) for one in found})
        known = {
            worker
            for command in ("SISMEMBER", "EXISTS")
            for worker, reply in zip(
                workers, await self._through([self._is_known(command, worker) for worker in workers]), strict=True
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
            unknown = [one for one in chunk if (stream, one.entry_id) not in self._standing_entries]
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
        replies = await self._through([snapshot(self._keys, task_id) for task_id in ids])
        return [record_of(reply, task_id) for task_id, reply in zip(ids, replies, strict=True)]

    async def _members(self, name: str) -> AsyncIterator[Page]:
        first = 0
        while ids := await self._link.client.call("ZRANGE", name, first, first + self._limit - 1):
            yield await self._looked_at(at_member(self._keys, TaskId(one)) for one in ids)
            first += len(ids)

    async def _looked_at(self, looks: Iterable[Look]) -> list[Fact]:
        wanted = list(looks)
        replies = await self._through([command for look in wanted for command in look.commands])
        left = iter(replies)
        facts = [look.read([next(left) for _ in look.commands]) for look in wanted]
        return [fact for fact in facts if fact is not None]

    async def _through(self, commands: Sequence[Sequence[str]]) -> list[Reply]:
        replies: list[Reply] = []
        for first in range(0, len(commands), TRIP):
            replies += await self._link.client.pipeline(commands[first : first + TRIP])
        return replies
