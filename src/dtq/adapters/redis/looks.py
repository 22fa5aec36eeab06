"""How each fact is read: the commands, the keys that they touch, and what their replies say.

The same look serves twice: many of them in one pipeline, where each command is of its own moment, and again in a
script, where all commands of a look are of the same one.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dtq.adapters.redis.client import Rejected, Reply
from dtq.adapters.redis.codec import SNAPSHOT, UnreadableRecord, task_of
from dtq.adapters.redis.keys import GROUP, Keyspace
from dtq.adapters.redis.names import STREAM, Name
from dtq.adapters.redis.schedule import moment_at
from dtq.adapters.redis.store import is_of_another_type
from dtq.adapters.redis.wire import heartbeat_of, pairs, read_record
from dtq.domain.errors import BrokerRefused, BrokerUnavailable
from dtq.domain.facts import (
    SEE_TYPES,
    ConsumerFact,
    Denied,
    EntryFact,
    Fact,
    HeartbeatFact,
    KeyFact,
    LetterFact,
    MemberFact,
    NameFact,
    QueueFact,
    Record,
    Role,
    TaskFact,
)
from dtq.domain.task import EntryId, QueueName, Receipt, TaskId, WorkerId

Page = Sequence[Fact | Denied]

ETERNAL: Final = -1
GONE: Final = -2
"""What PTTL answers for a key without a lifetime, and for none."""

_NO_GROUPS: Final[Sequence[Reply]] = ()


class Look(Struct, frozen=True):
    """Commands on keys, and what their replies say; None where nothing is there."""

    keys: Sequence[str]
    commands: Sequence[Sequence[str]]
    read: Callable[[Sequence[Reply]], Fact | None]


def record_of(reply: Reply, task_id: str) -> Record:
    """Read the reply to an HMGET of the fields of a snapshot."""
    if is_of_another_type(reply):
        return Record(fault="it is a key of another type")
    if isinstance(reply, Rejected):
        raise reply
    try:
        return Record(task_of(reply, task_id=task_id))
    except UnreadableRecord as error:
        return Record(fault=error.why)


def snapshot(keys: Keyspace, task_id: str) -> Sequence[str]:
    """Return the command that reads a task's record."""
    return ("HMGET", keys.task_prefix + task_id, *SNAPSHOT)


def at_entry(keys: Keyspace, receipt: Receipt, task_id: str) -> Look:
    """Look at an entry and at the record of the task that it names."""
    stream = keys.stream(receipt.queue, receipt.priority)
    entry = ("XRANGE", stream, receipt.entry_id, receipt.entry_id)
    commands = [entry, snapshot(keys, task_id), ("SISMEMBER", keys.cancelled, task_id)]

    def read(replies: Sequence[Reply]) -> Fact | None:
        found, record, marked = replies
        if not isinstance(found, list) or not found or is_of_another_type(marked):
            # who is to say that it was not cancelled
            return None
        return EntryFact(
            receipt=receipt,
            task_id=task_id,
            record=record_of(record, task_id),
            cancelled=marked == 1,
            fields=pairs(found[0][1]),
        )

    return Look([stream, keys.task_prefix + task_id, keys.cancelled], commands, read)


def at_member(keys: Keyspace, task_id: TaskId) -> Look:
    """Look at an id in the schedule or on loan."""
    sets = (keys.schedule, keys.claimed)
    commands = [*(("ZSCORE", name, task_id) for name in sets), snapshot(keys, task_id)]

    def read(replies: Sequence[Reply]) -> Fact | None:
        *scores, record = replies
        if scores == [None, None]:
            return None
        due, claimed_at = (moment_at(score) if isinstance(score, str) else None for score in scores)
        return MemberFact(task_id, record_of(record, task_id), due, claimed_at)

    return Look([*sets, keys.task(task_id)], commands, read)


def at_letter(keys: Keyspace, entry_id: EntryId, task_id: str) -> Look:
    """Look at a dead letter and at the record of its task."""
    commands = [("XRANGE", keys.dead_letters, entry_id, entry_id), snapshot(keys, task_id)]

    def read(replies: Sequence[Reply]) -> Fact | None:
        found, record = replies
        return LetterFact(entry_id=entry_id, task_id=task_id, record=record_of(record, task_id)) if found else None

    return Look([keys.dead_letters, keys.task_prefix + task_id], commands, read)


def at_key(keys: Keyspace, queue: QueueName, key: str, *, text: str) -> Look:
    """Look at what is stored under an idempotency key, as long as it is *text*, and at the task that this names."""
    name, named = keys.idempotency(queue, key), read_record(text)
    task_id = "" if named is None else named.task_id
    commands = [("GET", name), snapshot(keys, task_id)]

    def read(replies: Sequence[Reply]) -> Fact | None:
        if replies[0] != text:
            return None
        record = Record() if named is None else record_of(replies[1], task_id)
        return KeyFact(queue=queue, key=key, text=text, named=named, record=record)

    return Look([name, keys.task_prefix + task_id], commands, read)


def at_name(keys: Keyspace, name: Name, *, task_id: TaskId | None = None) -> Look:
    """Look at the type and the lifetime of a stored name, a stream's last id, and the task that it is about, if any."""
    commands: list[Sequence[str]] = [("TYPE", name.text), ("PTTL", name.text)]
    touched = [name.text]
    if task_id is not None:
        commands.append(snapshot(keys, task_id))
        touched.append(keys.task(task_id))
    if name.kind == STREAM:
        commands.append(("XINFO", "STREAM", name.text))

    def read(replies: Sequence[Reply]) -> Fact | None:
        kind, lifetime, *rest = replies
        for reply in (kind, lifetime):
            if isinstance(reply, Rejected):
                raise reply
        if lifetime == GONE or kind == "none":
            return None
        return NameFact(
            name=name.text,
            role=name.role,
            wrong_type=kind if name.kind not in {kind, ""} and name.role is not Role.FOREIGN else "",
            is_eternal=lifetime == ETERNAL,
            lifetime=timedelta(milliseconds=max(0, lifetime)),
            last_id=last_id(rest[-1]) if name.kind == STREAM else "",
            task_id=task_id or name.task_id or name.result_of,
            record=record_of(rest[0], task_id or "") if task_id is not None else Record(),
        )

    return Look(touched, commands, read)


def last_id(state: Reply) -> str:
    """Read the last id that a stream has given; '' where it may not be asked, or is none."""
    return str(pairs(state)["last-generated-id"]) if isinstance(state, list) else ""


def with_records(keys: Keyspace, names: Page, facts: Page) -> Page:
    """Add to names the records of their tasks, as far as they are among *facts*."""
    known = {keys.task(one.task_id): one.record for one in facts if isinstance(one, TaskFact)}
    known |= {keys.idempotency(one.queue, one.key): one.record for one in facts if isinstance(one, KeyFact)}
    return [
        replace(one, record=known[one.name]) if isinstance(one, NameFact) and one.name in known else one
        for one in names
    ]


def at_heartbeat(keys: Keyspace, worker: WorkerId) -> Look:
    """Look at a worker's heartbeat."""
    name = keys.worker(worker)

    def read(replies: Sequence[Reply]) -> Fact | None:
        if not isinstance(replies[0], list) or not replies[0]:
            return None
        is_known = replies[1] == 1 or is_of_another_type(replies[1])
        return HeartbeatFact(worker=worker, heartbeat=heartbeat_of(pairs(replies[0])), is_known=is_known)

    return Look([name, keys.workers], [("HGETALL", name), ("SISMEMBER", keys.workers, worker)], read)


def at_consumer(keys: Keyspace, queue: QueueName, worker: WorkerId) -> Look:
    """Look at one consumer in all streams of a queue."""
    streams = keys.streams(queue)
    commands = [
        ("SISMEMBER", keys.workers, worker),
        ("EXISTS", keys.worker(worker)),
        *(("XINFO", "CONSUMERS", stream, GROUP) for stream in streams),
    ]

    def read(replies: Sequence[Reply]) -> Fact | None:
        listed, alive, *groups = replies
        found = [one for one in consumers_of(groups) if one["name"] == worker]
        if not found or is_of_another_type(listed):
            return None
        return consumer_fact(queue, worker, found, is_known=1 in {listed, alive})

    return Look([keys.workers, keys.worker(worker), *streams], commands, read)


def consumers_of(groups: Sequence[Reply]) -> list[Mapping[str, Reply]]:
    """Read replies to XINFO CONSUMERS; a group that is not there has none."""
    return [pairs(one) for group in groups if isinstance(group, list) for one in group]


def consumer_fact(
    queue: QueueName, worker: WorkerId, found: Sequence[Mapping[str, Reply]], *, is_known: bool
) -> ConsumerFact:
    """Sum one consumer up over the streams of its queue."""
    return ConsumerFact(
        queue=queue,
        worker=worker,
        # the second figure of each: its name is that of a status too
        owns=sum([*one.values()][1] for one in found),
        idle=timedelta(milliseconds=min(one["idle"] for one in found)),
        is_known=is_known,
    )


def at_queue(keys: Keyspace, name: str, *, waiting: TaskId | None = None) -> Look:
    """Look at the name of a queue, and at a task that named it: is it registered, which of its streams have a group.

    It is gone where nothing is stored of it any more, and the task is none of its living ones.
    """
    streams, switch = keys.streams(QueueName(name)), keys.paused(QueueName(name))
    commands = [("HEXISTS", keys.queues, name), ("EXISTS", switch), snapshot(keys, waiting or "")]
    commands += [("XINFO", "GROUPS", stream) for stream in streams]

    def read(replies: Sequence[Reply]) -> Fact | None:
        registered, paused, record, *groups = replies
        readable = [reply for reply in groups if not is_of_another_type(reply)]
        owned = [reply for reply in readable if last_delivered(reply)]
        is_registered = registered == 1 or is_of_another_type(registered)
        task = None if waiting is None else record_of(record, waiting).task
        lives = task is not None and task.queue == name and not task.is_terminal
        if not (is_registered or lives or paused == 1 or any(map(_is_stored, groups))):
            return None
        return QueueFact(
            name=name,
            is_registered=is_registered,
            waiting=waiting if lives else None,
            groups=len(owned),
            bands=len(readable),
        )

    return Look([keys.queues, switch, keys.task_prefix + (waiting or ""), *streams], commands, read)


def _is_stored(groups: Reply) -> bool:
    """Tell whether there is a stream, whatever may be asked of it."""
    return not isinstance(groups, Rejected) or not is_missing(groups)


def is_missing(state: Rejected) -> bool:
    """Tell whether a stream is not there, as against one that may not be asked about."""
    return "no such key" in str(state)


def last_delivered(groups: Reply) -> str:
    """Read up to where our group has read a stream; '' where there is no such group."""
    found = [pairs(group) for group in (groups if isinstance(groups, list) else _NO_GROUPS)]
    return next((str(group["last-delivered-id"]) for group in found if group["name"] == GROUP), "")


async def told(what: str, pages: AsyncIterator[Page]) -> AsyncIterator[Page]:
    """Pass pages on, and tell of what keeps the rest from being read."""
    try:
        async for page in pages:
            yield page
    except BrokerRefused as error:
        yield [Denied(what, why(error))]


def why(error: BrokerUnavailable) -> str:
    """Say why something could not be read; of a key of another type there is a finding that says more."""
    return SEE_TYPES if is_of_another_type(error) else str(error)
