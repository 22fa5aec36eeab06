"""What a change needs beside the version of its task, as reads whose outcome commit.lua compares."""

from collections.abc import Iterable, Sequence
from typing import Final

from dtq.adapters.redis.envelope import Envelope, Guard, among, below
from dtq.adapters.redis.keys import GROUP, Keyspace
from dtq.adapters.redis.wire import record_prefix
from dtq.domain.admission import BrokerLimits
from dtq.domain.change import Change, Requirement
from dtq.domain.status import Place
from dtq.domain.task import Receipt, Task, TaskId, place_of
from dtq.ports.answers import Admission, LimitName

ABSENT: Final = ("",)
NONE: Final = ("0",)
ONE: Final = ("1",)
UNREAD: Final = ("0", "NOGROUP")
"""What is pending of an entry that nobody has read; a stream without a group has not been read at all."""


def requirements(envelope: Envelope, keys: Keyspace, change: Change) -> list[tuple[Requirement, Guard]]:
    """Return the guards of a change, each with the requirement that it stands for."""
    return [
        (requirement, guard)
        for requirement in change.requires
        for guard in _guards_of(envelope, keys, change, requirement)
    ]


def _guards_of(envelope: Envelope, keys: Keyspace, change: Change, requirement: Requirement) -> Iterable[Guard]:
    task = change.before or change.after
    match requirement:
        case Requirement.HELD:
            return (is_owned(envelope, keys, _receipt(task), worker=change.holder or ""),)
        case Requirement.UNPAUSED:
            return (among(NONE, ("EXISTS", envelope.key(keys.paused(task.queue)))),)
        case Requirement.IN_DEAD_LETTERS:
            return (among(ONE, _letter(envelope, keys, task)),)
        case Requirement.UNDELIVERED:
            return (is_unread(envelope, keys, _receipt(task)),)
        case Requirement.HOMELESS:
            return _is_homeless(envelope, keys, task)


def is_owned(envelope: Envelope, keys: Keyspace, receipt: Receipt, *, worker: str) -> Guard:
    """Require that the group's pending list names *worker* as the owner of an entry."""
    stream = envelope.key(keys.stream(receipt.queue, receipt.priority))
    entry_id = envelope.text(receipt.entry_id)
    return among(ONE, ("XPENDING", stream, GROUP, entry_id, entry_id, "1", envelope.text(worker)))


def is_unread(envelope: Envelope, keys: Keyspace, receipt: Receipt) -> Guard:
    """Require that nobody has read an entry."""
    stream = envelope.key(keys.stream(receipt.queue, receipt.priority))
    entry_id = envelope.text(receipt.entry_id)
    return among(UNREAD, ("XPENDING", stream, GROUP, entry_id, entry_id, "1"))


def stands(envelope: Envelope, keys: Keyspace, receipt: Receipt) -> Guard:
    """Require that an entry is in its stream."""
    return among(ONE, _entry(envelope, keys, receipt))


def has_version(envelope: Envelope, keys: Keyspace, task: Task | None, *, task_id: str) -> Guard:
    """Require that a task is stored as *task* has it; None requires that it is not stored."""
    version = "" if task is None else task.version
    record = envelope.key(keys.task_prefix + task_id)
    return among((envelope.text(version),), ("HGET", record, "version"))


def names_task(envelope: Envelope, key: int, task_id: TaskId, *, or_nothing: bool = False) -> Guard:
    """Require that an idempotency record, by the number of its key, is that of a task, in whatever state."""
    prefix = record_prefix(task_id)
    own = envelope.text(prefix)
    texts = (own, "") if or_nothing else (own,)
    return among(texts, ("GETRANGE", key, "0", str(len(prefix.encode()) - 1)))


def admission_guards(
    envelope: Envelope, keys: Keyspace, admission: Admission, *, limits: BrokerLimits, record: str | None
) -> list[tuple[LimitName | None, Guard]]:
    """Return the guards of a submission in the port's order, each with the limit that it stands for.

    The first one, where there is a key, is no limit: the key has no record, the one that is to be replaced, or
    *record*, which the submission itself will write, and which an earlier try that was stopped may have written.
    """
    task = admission.change.after
    guards: list[tuple[LimitName | None, Guard]] = []
    if task.idempotency_key is not None:
        texts: list[str | int] = [
            "",
            *[envelope.text(text) for text in (admission.replaces, record) if text is not None],
        ]
        command = ("GET", envelope.key(keys.idempotency(task.queue, task.idempotency_key)))
        guards.append((None, among(texts, command)))
    depths = [("XLEN", envelope.key(stream)) for stream in keys.streams(task.queue)]
    guards.append(("queue_full", below(limits.queue_depth, depths)))
    if place_of(task) is Place.SCHEDULE:
        waiting = [("ZCARD", envelope.key(keys.schedule)), ("ZCARD", envelope.key(keys.claimed))]
        guards.append(("schedule_full", below(limits.scheduled, waiting)))
    queues = envelope.key(keys.queues)
    is_known = ("HEXISTS", queues, envelope.text(task.queue))
    guards.append(("too_many_queues", below(limits.queues, [("HLEN", queues)], unless=is_known)))
    return guards


def _is_homeless(envelope: Envelope, keys: Keyspace, task: Task) -> Sequence[Guard]:
    match place_of(task):
        case Place.SCHEDULE:
            sets = (keys.schedule, keys.claimed)
            return [among(ABSENT, ("ZSCORE", envelope.key(name), envelope.text(task.task_id))) for name in sets]
        case Place.READY | Place.HELD if task.entry_id is not None:
            return [among(NONE, _entry(envelope, keys, _receipt(task)))]
        case Place.DEAD if task.dlq_entry_id is not None:
            return [among(NONE, _letter(envelope, keys, task))]
        case _:
            return ()


def _receipt(task: Task) -> Receipt:
    receipt = task.receipt
    if receipt is None:
        raise ValueError(f"task {task.task_id} names no entry, but its change requires something of one")
    return receipt


def _entry(envelope: Envelope, keys: Keyspace, receipt: Receipt) -> tuple[str | int, ...]:
    stream = envelope.key(keys.stream(receipt.queue, receipt.priority))
    entry_id = envelope.text(receipt.entry_id)
    return ("XRANGE", stream, entry_id, entry_id)


def _letter(envelope: Envelope, keys: Keyspace, task: Task) -> tuple[str | int, ...]:
    # an id that is missing finds nothing, as the lowest one does
    entry_id = envelope.text(task.dlq_entry_id or "0-1")
    return ("XRANGE", envelope.key(keys.dead_letters), entry_id, entry_id)
