"""What a change needs beside the version of its task, as reads whose outcome commit.lua compares."""

from collections.abc import Iterable, Sequence
from typing import Final

from dtq.adapters.redis.envelope import Command, Envelope, Guard, among, below
from dtq.adapters.redis.forms import Blank
from dtq.adapters.redis.keys import GROUP, Keyspace
from dtq.adapters.redis.moves import Finder, Move, Shape
from dtq.adapters.redis.wire import record_end, record_prefix
from dtq.domain.admission import BrokerLimits
from dtq.domain.change import Requirement
from dtq.domain.status import Place
from dtq.domain.task import NO_VERSION, Receipt, Task, TaskId, Version
from dtq.ports.answers import LimitName

ABSENT: Final = ("",)
NONE: Final = ("0",)
ONE: Final = ("1",)
UNREAD: Final = ("0", "NOGROUP")
"""What is pending of an entry that nobody has read; a stream without a group has not been read at all."""


def requirements(shape: Shape, blank: Blank[Move], find: Finder) -> list[tuple[Requirement, Guard]]:
    """Return the guards of a change, each with the requirement that it stands for."""
    return [
        (requirement, guard) for requirement in shape.requires for guard in _guards_of(requirement, shape, blank, find)
    ]


def _guards_of(requirement: Requirement, shape: Shape, blank: Blank[Move], find: Finder) -> Iterable[Guard]:
    match requirement:
        case Requirement.HELD:
            return (_owned(blank.key(find.stream), blank.text(find.entry_id), blank.text(find.holder)),)
        case Requirement.UNPAUSED:
            return (among(NONE, ("EXISTS", blank.key(find.paused))),)
        case Requirement.IN_DEAD_LETTERS:
            return (among(ONE, _entry(blank.key(find.dead_letters), blank.text(find.letter_id))),)
        case Requirement.UNDELIVERED:
            return (_unread(blank.key(find.stream), blank.text(find.entry_id)),)
        case Requirement.HOMELESS:
            return _is_homeless(shape, blank, find)


def _is_homeless(shape: Shape, blank: Blank[Move], find: Finder) -> Sequence[Guard]:
    match shape.source:
        case Place.SCHEDULE:
            sets = (find.schedule, find.claimed)
            return [among(ABSENT, ("ZSCORE", blank.key(name), blank.text(find.task_id))) for name in sets]
        case Place.READY | Place.HELD if shape.had_entry:
            return [among(NONE, _entry(blank.key(find.stream), blank.text(find.entry_id)))]
        case Place.DEAD if shape.had_letter:
            return [among(NONE, _entry(blank.key(find.dead_letters), blank.text(find.letter_id)))]
        case _:
            return ()


def admission_guards(
    shape: Shape, blank: Blank[Move], find: Finder, *, limits: BrokerLimits
) -> list[tuple[LimitName | None, Guard]]:
    """Return the guards of a submission in the port's order, each with the limit that it stands for.

    The first one, where there is a key, is no limit: the key has no record, the one that is to be replaced, or
    the one that the submission itself will write, and which an earlier try that was stopped may have written.
    """
    guards: list[tuple[LimitName | None, Guard]] = []
    if shape.has_key:
        records = (find.replaced_record, find.key_record) if shape.replaces else (find.key_record,)
        texts: list[str | int] = ["", *map(blank.text, records)]
        guards.append((None, among(texts, ("GET", blank.key(find.idempotency)))))
    depths = [("XLEN", stream) for stream in blank.keys(find.streams)]
    guards.append(("queue_full", below(limits.queue_depth, depths)))
    if shape.target is Place.SCHEDULE:
        waiting = [("ZCARD", blank.key(find.schedule)), ("ZCARD", blank.key(find.claimed))]
        guards.append(("schedule_full", below(limits.scheduled, waiting)))
    queues = blank.key(find.queues)
    is_known = ("HEXISTS", queues, blank.text(find.queue))
    guards.append(("too_many_queues", below(limits.queues, [("HLEN", queues)], unless=is_known)))
    return guards


def is_owned(envelope: Envelope, keys: Keyspace, receipt: Receipt, *, worker: str) -> Guard:
    """Require that the group's pending list names *worker* as the owner of an entry."""
    return _owned(*_address(envelope, keys, receipt), envelope.text(worker))


def is_unread(envelope: Envelope, keys: Keyspace, receipt: Receipt) -> Guard:
    """Require that nobody has read an entry."""
    return _unread(*_address(envelope, keys, receipt))


def stands(envelope: Envelope, keys: Keyspace, receipt: Receipt) -> Guard:
    """Require that an entry is in its stream."""
    return among(ONE, _entry(*_address(envelope, keys, receipt)))


def has_version(envelope: Envelope, keys: Keyspace, task: Task | None, *, task_id: str) -> Guard:
    """Require that a task is stored as *task* has it; None requires that it is not stored."""
    return at_version(envelope, keys, NO_VERSION if task is None else task.version, task_id=task_id)


def at_version(envelope: Envelope, keys: Keyspace, version: Version, *, task_id: str) -> Guard:
    """Require that the record of a task has this version; NO_VERSION requires that there is none."""
    record = envelope.key(keys.task_prefix + task_id)
    if version == NO_VERSION:
        # a record that has lost its version is one all the same
        return among(NONE, ("EXISTS", record))
    return among((envelope.text(version),), ("HGET", record, "version"))


def names_task(envelope: Envelope, key: int, task_id: TaskId) -> Guard:
    """Require that an idempotency record, by the number of its key, is that of a task, in whatever state."""
    return begins(key, envelope.text(record_prefix(task_id)), end=envelope.text(record_end(task_id)))


def begins(key: int, prefix: int, *, end: int, or_is_nothing: bool = False) -> Guard:
    """Require that the text in a key begins with *prefix*, whose last byte is at *end*; all four are numbers."""
    return among((prefix, "") if or_is_nothing else (prefix,), ("GETRANGE", key, "0", end))


def _address(envelope: Envelope, keys: Keyspace, receipt: Receipt) -> tuple[int, int]:
    return envelope.key(keys.stream(receipt.queue, receipt.priority)), envelope.text(receipt.entry_id)


def _owned(stream: int, entry_id: int, worker: int) -> Guard:
    return among(ONE, ("XPENDING", stream, GROUP, entry_id, entry_id, "1", worker))


def _unread(stream: int, entry_id: int) -> Guard:
    return among(UNREAD, ("XPENDING", stream, GROUP, entry_id, entry_id, "1"))


def _entry(stream: int, entry_id: int) -> Command:
    return ("XRANGE", stream, entry_id, entry_id)
