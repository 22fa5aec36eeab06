"""Queues as a whole."""

import re
from collections.abc import Collection, Sequence
from typing import Final

from dtq.adapters.redis.client import Rejected, Reply, checked
from dtq.adapters.redis.envelope import Envelope, Step, among
from dtq.adapters.redis.guards import NONE, has_version, is_unread
from dtq.adapters.redis.keys import BANDS, GROUP
from dtq.adapters.redis.link import Link
from dtq.adapters.redis.peeking import Peeked, Range, own_task, peek
from dtq.adapters.redis.store import is_of_another_type, readable
from dtq.adapters.redis.wire import pairs
from dtq.domain.admission import QUEUE_PATTERN
from dtq.domain.audit import AuditEntry
from dtq.domain.errors import BrokerUnavailable
from dtq.domain.events import Event
from dtq.domain.task import QueueName, Receipt, Task
from dtq.ports.queues import QueueStats

_COUNT: Final = re.compile(r"-?[0-9]{1,18}")


async def register(link: Link, queue: QueueName) -> None:
    """Make a queue known and its ten groups, from the first entry on, in one step."""

    def make(envelope: Envelope) -> None:
        steps = [_registration(link, envelope, queue)]
        for stream in map(envelope.key, link.keys.streams(queue)):
            is_missing = among(("NOGROUP",), ("XPENDING", stream, GROUP))
            steps.append((("XGROUP", "CREATE", stream, GROUP, "0", "MKSTREAM"), is_missing))
        envelope.add(steps=steps)

    await link.act(make)


def _registration(link: Link, envelope: Envelope, queue: QueueName) -> Step:
    registry = envelope.key(link.keys.queues)
    # a count that somebody spoiled refuses to be added to, and the name is known all the same
    return (("HINCRBY", registry, queue, "0"), among(NONE, ("HEXISTS", registry, queue)))


class RedisQueues:
    """Queues on Redis."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def register(self, queue: QueueName) -> None:
        await register(self._link, queue)

    async def names(self) -> Sequence[QueueName]:
        names = await self._link.client.call("HKEYS", self._link.keys.queues)
        return known_queues(names)

    async def stats(self, queue: QueueName) -> QueueStats:
        keys = self._link.keys
        streams = keys.streams(queue)
        switch = keys.paused(queue)
        commands = [
            ("EXISTS", switch),
            ("HGET", keys.queues, queue),
            ("ZCARD", keys.schedule),
            ("ZCARD", keys.claimed),
            *(("XLEN", stream) for stream in streams),
            *(("XPENDING", stream, GROUP) for stream in streams),
        ]
        touched = (switch, keys.queues, keys.schedule, keys.claimed, *streams)
        paused, scheduled, schedule, claimed, *figures = await self._link.run(commands, keys=touched)
        return QueueStats(
            queue=queue,
            depth=sum(checked(reply) for reply in figures[: len(streams)]),
            pending=sum(owned_of(reply) for reply in figures[len(streams) :]),
            paused=checked(paused) == 1,
            # an id that was dropped without its task is still counted for its queue: no more than there are in all
            retry_scheduled=max(0, min(counted(checked(scheduled)), checked(schedule) + checked(claimed))),
        )

    async def pause(self, queue: QueueName, *, audit: AuditEntry, event: Event) -> None:
        def switch(envelope: Envelope) -> None:
            writer = self._link.writer(envelope)
            set_it = (("SET", envelope.key(self._link.keys.paused(queue)), "1"),)
            known = _registration(self._link, envelope, queue)
            envelope.add(steps=[known, set_it, writer.audit(audit), writer.publish(event)])

        await self._link.act(switch)

    async def resume(self, queue: QueueName, *, audit: AuditEntry, event: Event) -> None:
        def switch(envelope: Envelope) -> None:
            writer = self._link.writer(envelope)
            drop_it = (("DEL", envelope.key(self._link.keys.paused(queue))),)
            envelope.add(steps=[drop_it, writer.audit(audit), writer.publish(event)])

        await self._link.act(switch)

    async def undelivered(self, queue: QueueName, *, limit: int) -> Sequence[Task | Receipt]:
        streams = self._link.keys.streams(queue)
        groups = await self._link.client.pipeline([("XINFO", "GROUPS", stream) for stream in streams])
        bands = {
            priority: Range(stream, f"({last_delivered(reply)}")
            for priority, stream, reply in zip(BANDS, streams, groups, strict=True)
            if not is_of_another_type(reply)
        }
        priorities = list(bands)
        found: list[Task | Receipt] = []
        for entry in await peek(self._link, list(bands.values()), limit=limit, records=True):
            receipt = Receipt(queue, priorities[entry.number], entry.entry_id)
            found.append(own_task(entry, receipt) or receipt)
        return found

    async def drop(self, receipts: Collection[Receipt]) -> int:
        wanted = list(receipts)
        keys = self._link.keys
        ranges = [
            Range(keys.stream(receipt.queue, receipt.priority), receipt.entry_id, receipt.entry_id)
            for receipt in wanted
        ]
        seen = await peek(self._link, ranges, limit=len(ranges), records=True)
        foreign = [entry for entry in seen if own_task(entry, wanted[entry.number]) is None]

        def remove(envelope: Envelope, entry: Peeked) -> None:
            receipt = wanted[entry.number]
            # a commit may have made the entry its task's own since it was looked at
            unchanged = has_version(
                envelope, keys, readable(entry.values or (), task_id=entry.task_id), task_id=entry.task_id
            )
            steps = [*self._link.writer(envelope).remove(receipt)]
            envelope.add(guards=[is_unread(envelope, keys, receipt), unchanged], steps=steps)

        return (await self._link.act_on(foreign, remove)).count("1")


def known_queues(names: Sequence[str]) -> list[QueueName]:
    """Sort the names of a registry, without those that no queue can have."""
    return sorted(QueueName(name) for name in names if QUEUE_PATTERN.fullmatch(name))


def counted(text: str | None) -> int:
    """Read a count of the registry; 0 where somebody put something else there."""
    return int(text) if text is not None and _COUNT.fullmatch(text) else 0


def owned_of(reply: Reply) -> int:
    """Read the number of entries that a group's consumers own; no group owns nothing."""
    if isinstance(reply, Rejected) and reply.reply_code == "NOGROUP":
        return 0
    return int(checked(reply)[0])


def last_delivered(reply: Reply) -> str:
    """Read up to where our group has read a stream; not at all where there is none."""
    if isinstance(reply, BrokerUnavailable):
        return "0-0"
    groups = [pairs(group) for group in reply]
    return next((group["last-delivered-id"] for group in groups if group["name"] == GROUP), "0-0")
