"""The examiner: pages of everything, single things once more in one step, and the small acts that mend."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from dtq.adapters.redis.envelope import Envelope, among
from dtq.adapters.redis.guards import NONE, ONE, at_version
from dtq.adapters.redis.keys import GROUP
from dtq.adapters.redis.link import Link
from dtq.adapters.redis.looks import (
    ETERNAL,
    Look,
    Page,
    at_consumer,
    at_entry,
    at_heartbeat,
    at_key,
    at_letter,
    at_member,
    at_name,
    at_queue,
)
from dtq.adapters.redis.names import name_of
from dtq.adapters.redis.pages import Pages
from dtq.adapters.redis.positions import at_reading, rewind
from dtq.adapters.redis.ready import HANDED_BACK
from dtq.adapters.redis.steps import milliseconds_text
from dtq.adapters.redis.tally import count_scheduled
from dtq.adapters.redis.task_looks import at_task
from dtq.adapters.redis.unnamed import unnamed
from dtq.adapters.redis.wire import json_text, read_record
from dtq.domain.errors import BrokerRefused
from dtq.domain.facts import (
    ConsumerFact,
    CountFact,
    EntryFact,
    Fact,
    HeartbeatFact,
    KeyFact,
    LetterFact,
    MemberFact,
    NameFact,
    QueueFact,
    ReadingFact,
    Role,
    TaskFact,
)
from dtq.domain.idempotency import IdempotencyRecord
from dtq.domain.task import EntryId, QueueName, Receipt, TaskId, Version, WorkerId

STEP: Final = 200
"""How many commands one script runs, or those of one look if they are more."""

_OFFERED: Final = "doctor"
"""The consumer that an entry without an owner is handed back by."""


class RedisExaminer:
    """Examinations on Redis."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def read(self, *, limit: int) -> AsyncIterator[Page]:
        return Pages(self._link, limit=limit).all()

    async def again(self, facts: Sequence[Fact]) -> Sequence[Fact | None]:
        counts: dict[QueueName, Fact] = {}
        if any(isinstance(fact, CountFact) for fact in facts):
            counts = await self._counts()
        others = [fact for fact in facts if not isinstance(fact, CountFact)]
        letters = await unnamed(self._link, others)
        looks = [await self._look(fact, letters) for fact in others]
        found = iter(await self._in_steps(looks))
        return [counts.get(fact.queue) if isinstance(fact, CountFact) else next(found) for fact in facts]

    async def _counts(self) -> dict[QueueName, Fact]:
        try:
            return {fact.queue: fact async for page in count_scheduled(self._link) for fact in page}
        except BrokerRefused:
            # they move, or cannot be read any more: none is surely wrong
            return {}

    async def _look(self, fact: Fact, letters: Mapping[TaskId, EntryId]) -> Look:
        keys = self._link.keys
        match fact:
            case TaskFact():
                searched = replace(fact, letter=fact.letter or letters.get(fact.task_id))
                return at_task(keys, searched, letter_limit=self._link.options.dead_letter_limit)
            case EntryFact():
                return at_entry(keys, fact.receipt, fact.task_id)
            case MemberFact():
                return at_member(keys, fact.task_id)
            case LetterFact():
                return at_letter(keys, fact.entry_id, fact.task_id)
            case _:
                return await self._look_around(fact)

    async def _look_around(
        self, fact: KeyFact | NameFact | ConsumerFact | QueueFact | ReadingFact | HeartbeatFact | CountFact
    ) -> Look:
        keys = self._link.keys
        match fact:
            case KeyFact():
                return at_key(keys, fact.queue, fact.key, text=fact.text)
            case NameFact():
                return at_name(keys, name_of(keys, fact.name), task_id=await self._task_of(fact))
            case ConsumerFact():
                return at_consumer(keys, fact.queue, fact.worker)
            case QueueFact():
                return at_queue(keys, fact.name, waiting=fact.waiting)
            case ReadingFact():
                return at_reading(keys, fact.queue)
            case HeartbeatFact():
                return at_heartbeat(keys, fact.worker)
            case CountFact():
                raise ValueError("counts are read together")

    async def _task_of(self, fact: NameFact) -> TaskId | None:
        """Return which task a name is about, which decides how long it is to live."""
        if fact.role is not Role.KEY or fact.wrong_type:
            return name_of(self._link.keys, fact.name).task_id
        (text,) = await self._link.client.pipeline([("GET", fact.name)])
        record = read_record(text) if isinstance(text, str) else None
        return None if record is None else record.task_id

    async def _in_steps(self, looks: Sequence[Look]) -> Sequence[Fact | None]:
        facts: list[Fact | None] = []
        batch: list[Look] = []
        for look in looks:
            if batch and sum(len(one.commands) for one in batch) + len(look.commands) > STEP:
                facts += await self._in_one_step(batch)
                batch = []
            batch.append(look)
        return [*facts, *await self._in_one_step(batch)]

    async def _in_one_step(self, looks: Sequence[Look]) -> Sequence[Fact | None]:
        if not looks:
            return ()
        touched = dict.fromkeys(key for look in looks for key in look.keys)
        commands = [command for look in looks for command in look.commands]
        replies = iter(await self._link.run(commands, keys=[*touched]))
        return [look.read([next(replies) for _ in look.commands]) for look in looks]

    async def rewrite_key(
        self, queue: QueueName, *, key: str, text: str, record: IdempotencyRecord | None, lifetime: timedelta
    ) -> bool:
        def rewrite(envelope: Envelope) -> None:
            name = envelope.key(self._link.keys.idempotency(queue, key))
            put = () if record is None else ("SET", name, json_text(record), "PX", milliseconds_text(lifetime))
            envelope.add(guards=[among((text,), ("GET", name))], steps=[(put or ("DEL", name),)])

        return await self._link.act(rewrite) is not None

    async def limit(self, name: str, *, lifetime: timedelta) -> bool:
        def expire(envelope: Envelope) -> None:
            key = envelope.key(name)
            guard = among((str(ETERNAL),), ("PTTL", key))
            envelope.add(guards=[guard], steps=[(("PEXPIRE", key, milliseconds_text(lifetime)),)])

        return await self._link.act(expire) is not None

    async def shorten(self, name: str, *, lifetime: timedelta) -> bool:
        def expire(envelope: Envelope) -> None:
            envelope.add(steps=[(("PEXPIRE", envelope.key(name), milliseconds_text(lifetime), "LT"),)])

        return await self._link.act(expire) == "1"

    async def prolong(self, name: str, *, lifetime: timedelta, task_id: TaskId, version: Version) -> bool:
        def expire(envelope: Envelope) -> None:
            guard = at_version(envelope, self._link.keys, version, task_id=task_id)
            envelope.add(guards=[guard], steps=[(("PEXPIRE", envelope.key(name), milliseconds_text(lifetime), "GT"),)])

        return await self._link.act(expire) == "1"

    async def persist(self, name: str) -> bool:
        return await self._link.act(lambda envelope: envelope.add(steps=[(("PERSIST", envelope.key(name)),)])) == "1"

    async def recount(self, fact: CountFact) -> bool:
        def note(envelope: Envelope) -> None:
            registry = envelope.key(self._link.keys.queues)
            guard = among((fact.text,), ("HGET", registry, fact.queue))
            envelope.add(guards=[guard], steps=[(("HSET", registry, fact.queue, str(fact.counted)),)])

        return await self._link.act(note) is not None

    async def strike(self, name: str) -> bool:
        def remove(envelope: Envelope) -> None:
            envelope.add(steps=[(("HDEL", envelope.key(self._link.keys.queues), name),)])

        return await self._link.act(remove) == "1"

    async def rewind(self, queue: QueueName, *, priority: int) -> bool:
        return await rewind(self._link, queue, priority=priority)

    async def remove_letter(self, entry_id: EntryId, *, task_id: TaskId, version: Version) -> bool:
        def remove(envelope: Envelope) -> None:
            keys = self._link.keys
            guard = at_version(envelope, keys, version, task_id=task_id)
            envelope.add(guards=[guard], steps=[(("XDEL", envelope.key(keys.dead_letters), entry_id),)])

        return await self._link.act(remove) == "1"

    async def introduce(self, worker: WorkerId) -> bool:
        def add(envelope: Envelope) -> None:
            keys = self._link.keys
            guard = among(ONE, ("EXISTS", envelope.key(keys.worker(worker))))
            envelope.add(guards=[guard], steps=[(("SADD", envelope.key(keys.workers), worker),)])

        return await self._link.act(add) == "1"

    async def offer(self, receipt: Receipt) -> bool:
        def hand_back(envelope: Envelope) -> None:
            stream = envelope.key(self._link.keys.stream(receipt.queue, receipt.priority))
            idle = milliseconds_text(HANDED_BACK)
            guard = among(NONE, ("XPENDING", stream, GROUP, receipt.entry_id, receipt.entry_id, "1"))
            claim = ("XCLAIM", stream, GROUP, _OFFERED, "0", receipt.entry_id, "IDLE", idle, "FORCE", "JUSTID")
            envelope.add(guards=[guard], steps=[(claim,)])

        return await self._link.act(hand_back) == "1"
