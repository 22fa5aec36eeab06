"""Entries of the ready queues: taken, kept, given back, removed."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

import msgspec
from msgspec import Struct

from dtq.adapters.redis.client import Argument, Rejected, Reply
from dtq.adapters.redis.codec import PAYLOAD, UnreadableRecord, is_set, task_of
from dtq.adapters.redis.envelope import FIRST_REPLY, MAX_ACTS, MAX_BYTES, Envelope, among
from dtq.adapters.redis.guards import ONE, has_version, is_owned, stands
from dtq.adapters.redis.keys import BANDS, GROUP, Keyspace
from dtq.adapters.redis.link import Link
from dtq.adapters.redis.queues import register
from dtq.adapters.redis.scripts import EXTEND, FETCH
from dtq.adapters.redis.shortened import NAMES, SHORT_LOOK, waiting_task
from dtq.adapters.redis.steps import milliseconds_text
from dtq.adapters.redis.store import is_of_another_type, sound
from dtq.adapters.redis.unseen import NOTHING_OFFERED, Offered
from dtq.adapters.redis.wire import pairs
from dtq.domain.change import Change
from dtq.domain.entry import malformed_fields
from dtq.domain.events import EventType, task_event
from dtq.domain.task import EntryId, QueueName, Receipt, Task, Version, WorkerId
from dtq.ports.broker import Delivery, Fetch, HeldLease, LeaseReport, UnreadableEntry

BITE: Final = 8
"""How many entries are read before their size is looked at."""

PAGE: Final = 500
"""How many pending entries are listed in one trip."""

_VALUES: Final = len(NAMES)
_WHOLE: Final = 3
"""In how many members fetch.lua tells all of an entry and its record; with a short look they are more."""

HANDED_BACK: Final = timedelta(days=30)
"""How long an entry that was handed back seems to have been idle: longer than any visibility timeout."""


class Sweep(Struct, frozen=True, kw_only=True):
    """What a worker asks for in one sweep, as the port has it."""

    queue: QueueName
    worker: WorkerId
    limit: int
    reap_idle: timedelta | None
    held: Collection[Receipt]
    offered: Offered | None = None

    def keys(self, names: Keyspace) -> Sequence[str]:
        """Return the keys of fetch.lua."""
        return _fetched_keys(names, self.queue)

    def arguments(self, names: Keyspace) -> Sequence[Argument]:
        """Return the arguments of fetch.lua."""
        return (
            GROUP,
            self.worker,
            self.limit,
            "" if self.reap_idle is None else milliseconds_text(self.reap_idle),
            BITE,
            MAX_BYTES,
            self.queue,
            names.task_prefix,
            _held_by_band(self.queue, self.held),
            *SHORT_LOOK,
            *(NOTHING_OFFERED if self.offered is None else self.offered.arguments()),
        )


async def fetch(link: Link, sweep: Sweep) -> Fetch:
    """Take entries in one sweep, as the port promises."""
    found = await link.scripts.run(FETCH, keys=sweep.keys(link.keys), arguments=sweep.arguments(link.keys))
    return fetched(link, sweep, found)


def fetched(link: Link, sweep: Sweep, found: Sequence[Reply]) -> Fetch:
    """Read what fetch.lua has found."""
    paused, faults, *entries = found
    deliveries, unreadable = _read(sweep, entries)
    return Fetch(
        deliveries=deliveries,
        now=link.clock.now(),
        paused=paused == 1,
        faults=[f"p{BANDS[band - 1]}: {reason}" for band, reason in faults or ()],
        unreadable=unreadable,
    )


@lru_cache(maxsize=64)
def _fetched_keys(keys: Keyspace, queue: QueueName) -> tuple[str, ...]:
    return (*keys.streams(queue), keys.paused(queue), keys.cancelled, keys.queues)


def _read(sweep: Sweep, entries: Iterable[Reply]) -> tuple[Sequence[Delivery], Sequence[UnreadableEntry]]:
    deliveries: list[Delivery] = []
    unreadable: list[UnreadableEntry] = []
    for band, entry_id, *found in entries:
        receipt = Receipt(sweep.queue, BANDS[band - 1], entry_id)
        is_marked, start = False, None
        try:
            if len(found) > _WHOLE:
                entry = found[:_VALUES]
                fields = dict(zip(NAMES, entry, strict=True))
                task = waiting_task(found[_VALUES:-1], entry, entry_id=entry_id)
                start = _start(sweep, task, receipt=receipt, number=found[-1])
            else:
                entry, values, marked = found
                fields, is_marked = pairs(entry), marked == 1
                task = task_of(values, task_id=fields.get("task_id", ""), payload=fields.get(PAYLOAD))
        except UnreadableRecord as error:
            unreadable.append(UnreadableEntry(receipt, str(error)))
        else:
            deliveries.append(Delivery(receipt=receipt, fields=fields, task=task, cancelled=is_marked, started=start))
    return deliveries, unreadable


def _start(sweep: Sweep, task: Task | None, *, receipt: Receipt, number: int) -> Change | None:
    if task is None or sweep.offered is None or number == 0:
        return None
    return sweep.offered.offers.start(task, number=number - 1, receipt=receipt, worker=sweep.worker)


async def wait(link: Link, queue: QueueName, *, worker: WorkerId, timeout: timedelta) -> Sequence[Receipt]:
    """Wait on all bands at once, as the port promises; groups that were lost are made again first."""
    streams: Sequence[str] = link.keys.streams(queue)
    try:
        return await _wait(link, queue, streams, worker=worker, timeout=timeout)
    except Rejected as error:
        if is_of_another_type(error):
            streams = await sound(link, streams)
        elif error.reply_code in {"NOGROUP", "UNBLOCKED"}:
            await register(link, queue)
        else:
            raise
        return await _wait(link, queue, streams, worker=worker, timeout=timeout)


async def _wait(
    link: Link, queue: QueueName, streams: Sequence[str], *, worker: WorkerId, timeout: timedelta
) -> Sequence[Receipt]:
    read = ("XREADGROUP", "GROUP", GROUP, worker, "COUNT", 1, "BLOCK", milliseconds_text(timeout))
    found = await link.client.call(*read, "STREAMS", *streams, *(">" for _ in streams), block=timeout)
    priorities = dict(zip(link.keys.streams(queue), BANDS, strict=True))
    return [
        Receipt(queue, priorities[stream], EntryId(entry_id))
        for stream, entries in found or ()
        for entry_id, _ in entries
    ]


async def owned(link: Link, queue: QueueName, *, worker: WorkerId) -> Sequence[Receipt]:
    """List what *worker* owns, as the port promises."""
    receipts: list[Receipt] = []
    for priority, stream in zip(BANDS, link.keys.streams(queue), strict=True):
        receipts += [Receipt(queue, priority, entry_id) for entry_id in await _pending(link, stream, worker=worker)]
    return receipts


async def _pending(link: Link, stream: str, *, worker: WorkerId) -> list[EntryId]:
    ids: list[EntryId] = []
    start = "-"
    while True:
        try:
            page = await link.client.call("XPENDING", stream, GROUP, start, "+", PAGE, worker)
        except Rejected as error:
            # of a stream that a stranger's key has taken the place of, nobody owns anything any more
            if error.reply_code != "NOGROUP" and not is_of_another_type(error):
                raise
            return ids
        ids += [EntryId(entry_id) for entry_id, *_ in page]
        if len(page) < PAGE:
            return ids
        start = f"({ids[-1]}"


async def release(link: Link, receipts: Collection[Receipt], *, worker: WorkerId) -> int:
    """Hand entries back, as the port promises."""
    idle = milliseconds_text(HANDED_BACK)

    def hand_back(envelope: Envelope, receipt: Receipt) -> None:
        stream = envelope.key(link.keys.stream(receipt.queue, receipt.priority))
        command = ("XCLAIM", stream, GROUP, worker, "0", envelope.text(receipt.entry_id), "IDLE", idle, "JUSTID")
        envelope.add(guards=[is_owned(envelope, link.keys, receipt, worker=worker)], steps=[(command,)])

    # an entry that was deleted meanwhile is claimed by nobody: an empty list, whose length is 0
    return (await link.act_on(receipts, hand_back)).count("1")


async def extend(link: Link, leases: Collection[HeldLease], *, worker: WorkerId) -> Sequence[LeaseReport]:
    """Make entries look new, as the port promises."""
    reports: list[LeaseReport] = []
    wanted = tuple(leases)
    for first in range(0, len(wanted), MAX_ACTS):
        part = wanted[first : first + MAX_ACTS]
        answers = await link.scripts.run(
            EXTEND,
            keys=[name for lease in part for name in _names(link, lease)],
            arguments=[GROUP, worker, *(text for lease in part for text in (lease.lease, lease.receipt.entry_id))],
        )
        reports += [
            LeaseReport(lease=lease.lease, kept=kept == 1, cancel_requested=is_set(flag))
            for lease, (kept, flag) in zip(part, answers, strict=True)
        ]
    return reports


def _names(link: Link, lease: HeldLease) -> tuple[str, str]:
    return link.keys.task(lease.task_id), link.keys.stream(lease.receipt.queue, lease.receipt.priority)


async def acknowledge(link: Link, delivery: Delivery, *, worker: WorkerId, absorbed: bool, token: Version) -> bool:
    """Remove an entry whose task has not moved, as the port promises."""
    task = delivery.task

    def remove(envelope: Envelope) -> None:
        writer = link.writer(envelope)
        steps = [*writer.remove(delivery.receipt)]
        if absorbed and task is not None:
            kind = EventType.DUPLICATE_ABSORBED
            event = task_event(task, kind=kind, event_id=token, at=link.clock.now(), worker=worker)
            steps.append(writer.publish(event, guard=among(ONE, FIRST_REPLY)))
        task_id = delivery.fields.get("task_id", "")
        envelope.add(guards=[has_version(envelope, link.keys, task, task_id=task_id)], steps=steps)

    return await link.act(remove) == "1"


async def bury(link: Link, delivery: Delivery, *, at: datetime) -> bool:
    """Move an entry that names no task to the dead letters, as the port promises."""
    receipt = delivery.receipt
    fields = malformed_fields(delivery.fields, receipt=receipt, at=at)

    def move(envelope: Envelope) -> None:
        writer = link.writer(envelope)
        steps = [writer.bury(fields), *writer.remove(receipt)]
        envelope.add(guards=[stands(envelope, link.keys, receipt)], steps=steps)

    return await link.act(move) is not None


def _held_by_band(queue: QueueName, held: Collection[Receipt]) -> bytes:
    if not held:
        return b""
    bands: dict[int, list[str]] = {priority: [] for priority in BANDS}
    for receipt in held:
        if receipt.queue == queue:
            bands[receipt.priority].append(receipt.entry_id)
    return msgspec.msgpack.encode([sorted(ids, key=_position) for ids in bands.values()])


def _position(entry_id: str) -> tuple[int, int]:
    moment, _, sequence = entry_id.partition("-")
    return int(moment), int(sequence)
