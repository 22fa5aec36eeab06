"""What is wrong with a stored thing, from what was read of it. Repairs: domain/remedies.py, words: domain/diagnoses.py.

A thing in motion is never wrong by these rules if it was read in one step; what takes time to right itself, such as the
consumer of a worker that has just gone, is believed only at an age.
"""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from dtq.domain.admission import QUEUE_PATTERN
from dtq.domain.entry import rebuild
from dtq.domain.facts import (
    LAST_ENTRY_ID,
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
from dtq.domain.findings import Bearings, Finding, Kind, shown
from dtq.domain.idempotency import RecordState, state_of
from dtq.domain.retention import LEAD_TERM, is_short
from dtq.domain.status import Place
from dtq.domain.task import QueueName, Task, TaskId, place_of
from dtq.domain.timing import mistimed

CLOCK_TOLERANCE: Final = timedelta(seconds=1)
"""How far two clocks may be apart."""

CONSUMER_AGE: Final = timedelta(seconds=90)
"""For how long a consumer may outlive its worker: the leader removes them once a minute."""

_COUNT: Final = re.compile(r"-?[0-9]{1,18}")
_IN_STREAMS: Final = frozenset({Place.READY, Place.HELD})
_OF_TASKS: Final = frozenset({Role.TASK, Role.KEY})


def examine(fact: Fact, *, bearings: Bearings) -> Iterator[Finding]:
    """Say everything that is wrong with one thing."""
    match fact:
        case TaskFact():
            yield from _task(fact, bearings=bearings)
        case EntryFact():
            yield from _entry(fact)
        case MemberFact():
            yield from _member(fact, bearings=bearings)
        case LetterFact():
            yield from _letter(fact)
        case _:
            yield from _around(fact, bearings=bearings)


def _around(
    fact: KeyFact | NameFact | ConsumerFact | QueueFact | ReadingFact | CountFact | HeartbeatFact, *, bearings: Bearings
) -> Iterator[Finding]:
    match fact:
        case KeyFact():
            yield from _key(fact)
        case NameFact():
            yield from _name(fact, bearings=bearings)
        case ConsumerFact():
            yield from _consumer(fact, bearings=bearings)
        case QueueFact():
            yield from _queue(fact)
        case ReadingFact():
            yield from _reading(fact)
        case CountFact():
            yield from _count(fact)
        case HeartbeatFact():
            yield from _heartbeat(fact, bearings=bearings)


def _task(fact: TaskFact, *, bearings: Bearings) -> Iterator[Finding]:
    task = fact.record.task
    if fact.record.fault:
        loses = "; it waits for its time: deleting its record loses it" if fact.scheduled else ""
        detail = f"its record cannot be read: {fact.record.fault}{loses}"
        yield _of(fact, Kind.UNREADABLE, fact.task_id, detail, task_id=fact.task_id)
    if task is None:
        return
    unguarded = None if task.idempotency_key is None or task.is_terminal else _unguarded(fact)
    if unguarded is not None:
        detail = f"its key {shown(task.idempotency_key or '')} guards nothing: {unguarded}"
        yield _of_task(fact, Kind.KEY, task, f"{task.status}, and {detail}")
    place = place_of(task)
    if not fact.has_payload and place is not Place.NOWHERE:
        advice = " set it again, or cancel it and submit it anew" if place is Place.SCHEDULE else " see docs/doctor.md"
        yield _of_task(fact, Kind.UNREADABLE, task, f"{task.status}, and it has no payload:{advice}")
    if place is Place.SCHEDULE and not fact.scheduled:
        yield _of_task(fact, Kind.HOMELESS, task, f"{task.status}, and neither scheduled nor on loan")
    if place in _IN_STREAMS and not fact.entered:
        yield _of_task(fact, Kind.HOMELESS, task, f"{task.status}, and its entry {task.entry_id} is gone")
    if place in _IN_STREAMS and fact.entered:
        yield from _held(fact, task, bearings=bearings)
    if place is Place.DEAD and not fact.lettered and not _is_explained(fact, task, bearings=bearings):
        yield _of_task(fact, Kind.LETTER_MISSING, task, f"its dead letter {task.dlq_entry_id} is gone")


def _unguarded(fact: TaskFact) -> str | None:
    """Say why nothing keeps a second task of the same key away; None where something does, or has ended so."""
    if fact.unkeyed:
        return "nothing is stored under it"
    return None if fact.key is None or fact.key.is_of_its_key else _key_fault(fact.key)


def _held(fact: TaskFact, task: Task, *, bearings: Bearings) -> Iterator[Finding]:
    if fact.owner is None:
        if fact.passed or place_of(task) is Place.HELD:
            yield _of_task(fact, Kind.ABANDONED, task, f"{task.status}, and nobody owns its entry {task.entry_id}")
        return
    is_handed_back = fact.idle >= bearings.handed_back
    if fact.idle >= bearings.abandoned_after and not (is_handed_back or fact.owner_lives or fact.paused):
        silent = f"its owner {shown(fact.owner)} is silent for {fact.idle.total_seconds():.0f} s"
        yield _of_task(fact, Kind.ABANDONED, task, f"{task.status}, and {silent}")


def _is_explained(fact: TaskFact, task: Task, *, bearings: Bearings) -> bool:
    """Tell whether a dead letter that is not there may have been trimmed or purged, as letters may be."""
    return fact.trimmed or task.finished_at is None or task.finished_at < bearings.letters_kept_since


def _entry(fact: EntryFact) -> Iterator[Finding]:
    task, address = fact.record.task, f"{fact.receipt.queue} p{fact.receipt.priority} {fact.receipt.entry_id}"
    if fact.record.is_missing:
        words = "is marked as cancelled" if fact.cancelled else "has no record"
        if fact.fields and not fact.cancelled and rebuild(fact.fields, receipt=fact.receipt) is None:
            words = "is none that could run"
        named, queue = TaskId(shown(fact.task_id)), fact.receipt.queue
        detail = f"its task {named} {words}"
        yield _of(fact, Kind.ORPHAN_ENTRY, address, detail, task_id=named or None, queue=queue)
    if task is not None and (place_of(task) not in _IN_STREAMS or task.receipt != fact.receipt):
        lives = f"lives in the {place_of(task).value} place" if not task.is_terminal else "has ended"
        if place_of(task) in _IN_STREAMS:
            lives = f"names entry {task.entry_id} as its own"
        yield _of_task(fact, Kind.SURPLUS_ENTRY, task, f"its task {lives}", subject=address)


def _member(fact: MemberFact, *, bearings: Bearings) -> Iterator[Finding]:
    task = fact.record.task
    if fact.record.is_missing:
        named = TaskId(shown(fact.task_id))
        detail = "no record of it is stored: the task is lost; submit it again"
        yield _of(fact, Kind.STRAY_MEMBER, fact.task_id, detail, task_id=named)
    if task is not None and place_of(task) is not Place.SCHEDULE:
        yield _of_task(fact, Kind.STRAY_MEMBER, task, f"its task is {task.status} and waits for no time")
    elif task is not None:
        latest = bearings.now + CLOCK_TOLERANCE
        wrong = mistimed(task, due=fact.due, claimed_at=fact.claimed_at, now=latest)
        yield from () if wrong is None else (_of_task(fact, Kind.MISTIMED, task, wrong),)


def _letter(fact: LetterFact) -> Iterator[Finding]:
    task = fact.record.task
    if task is not None and (place_of(task) is not Place.DEAD or task.dlq_entry_id != fact.entry_id):
        says = "was discarded" if task.discarded else f"is {task.status}"
        if place_of(task) is Place.DEAD:
            says = f"names letter {task.dlq_entry_id} as its own"
        yield _of_task(fact, Kind.LETTER_SURPLUS, task, f"its task {task.task_id} {says}", subject=fact.entry_id)


def _key(fact: KeyFact) -> Iterator[Finding]:
    words = _key_fault(fact)
    if words is not None:
        task_id = None if fact.named is None else fact.named.task_id
        subject = f"{fact.queue} {shown(fact.key)}"
        yield Finding(kind=Kind.KEY, subject=subject, detail=words, fact=fact, task_id=task_id, queue=fact.queue)


def _key_fault(fact: KeyFact) -> str | None:
    named, task = fact.named, fact.record.task
    if named is None:
        return "it cannot be read"
    if fact.record.is_missing:
        # one that tells of an end may outlive its task: it is what is left of that
        is_leaked = named.state is RecordState.PROCESSING
        return f"says processing, and task {named.task_id} is not stored" if is_leaked else None
    if task is None:
        return None
    if not fact.is_of_its_key:
        return f"names task {named.task_id}, whose key is another"
    return f"says {named.state}, and its task is {task.status}" if named.state is not state_of(task.status) else None


def _name(fact: NameFact, *, bearings: Bearings) -> Iterator[Finding]:
    if fact.last_id == LAST_ENTRY_ID:
        yield _of(fact, Kind.EXHAUSTED, shown(fact.name), f"its last id is {fact.last_id}, and none comes after it")
    if fact.role is Role.FOREIGN:
        yield _of(fact, Kind.FOREIGN, shown(fact.name), "no key of dtq has this name")
    elif fact.wrong_type:
        yield _of(fact, Kind.WRONG_TYPE, shown(fact.name), f"it is a {fact.wrong_type}")
    elif fact.role is Role.LOCK and fact.lifetime > LEAD_TERM:
        detail = f"it lives for another {fact.lifetime.total_seconds():.0f} s, and a lock for {LEAD_TERM.seconds} s"
        yield _of(fact, Kind.LOCK, shown(fact.name), detail)
    elif fact.is_eternal and fact.role is not Role.BOUNDED:
        kind = Kind.LOCK if fact.role is Role.LOCK else Kind.ETERNAL
        task = fact.record.task
        detail = "it has no lifetime"
        found = _of(fact, kind, shown(fact.name), detail, task_id=fact.task_id)
        yield found if task is None else _of_task(fact, kind, task, detail, subject=found.subject)
    elif fact.lifetime:
        yield from _short(fact, bearings=bearings)


def _short(fact: NameFact, *, bearings: Bearings) -> Iterator[Finding]:
    task, subject = fact.record.task, shown(fact.name)
    detail = f"it is gone in {fact.lifetime.total_seconds():.0f} s"
    if fact.role is Role.BOUNDED:
        yield _of(fact, Kind.SHORT, subject, f"{detail}, and is to stay")
    elif fact.role in _OF_TASKS and task is not None and is_short(task, left=fact.lifetime, at=bearings.now):
        yield _of_task(fact, Kind.SHORT, task, f"{detail}, and its task is {task.status}", subject=subject)


def _consumer(fact: ConsumerFact, *, bearings: Bearings) -> Iterator[Finding]:
    # what one of nobody owns is its tasks' matter, which is excused while their queue is paused
    if fact.is_known or fact.owns or bearings.swept_since is None:
        return
    age = min(fact.idle, bearings.now - bearings.swept_since)
    yield Finding(
        kind=Kind.CONSUMER,
        subject=f"{fact.queue} {shown(fact.worker)}",
        detail=f"no such worker is known, it owns nothing, and has not read for {fact.idle.total_seconds():.0f} s",
        fact=fact,
        queue=fact.queue,
        ripe_in=max(timedelta(), CONSUMER_AGE - age),
    )


def _queue(fact: QueueFact) -> Iterator[Finding]:
    if not QUEUE_PATTERN.fullmatch(fact.name):
        yield _of(fact, Kind.BAD_NAME, shown(fact.name), "no queue can have this name")
        return
    queue = QueueName(fact.name)
    if not fact.is_registered:
        detail = "it has keys, and is not in the list of queues"
        yield Finding(kind=Kind.UNREGISTERED, subject=queue, detail=detail, fact=fact, queue=queue)
    elif 0 < fact.groups < fact.bands:
        detail = f"{fact.bands - fact.groups} of its {fact.bands} priorities have no consumer group"
        yield Finding(kind=Kind.GROUP, subject=queue, detail=detail, fact=fact, queue=queue)


def _reading(fact: ReadingFact) -> Iterator[Finding]:
    if fact.ahead:
        which = ", ".join(f"p{priority}" for priority in fact.ahead)
        detail = f"of {which} the group has read beyond the last entry that there ever was"
        yield Finding(kind=Kind.AHEAD, subject=fact.queue, detail=detail, fact=fact, queue=fact.queue)


def _count(fact: CountFact) -> Iterator[Finding]:
    if not _COUNT.fullmatch(fact.text) or int(fact.text) != fact.counted:
        says = f"says {shown(fact.text)}, and {fact.counted} are scheduled"
        yield Finding(kind=Kind.COUNT, subject=fact.queue, detail=says, fact=fact, queue=fact.queue)


def _heartbeat(fact: HeartbeatFact, *, bearings: Bearings) -> Iterator[Finding]:
    subject = shown(fact.worker)
    if fact.heartbeat is None:
        yield _of(fact, Kind.UNREADABLE, f"worker {subject}", "the heartbeat cannot be read")
        return
    if not fact.is_known:
        yield _of(fact, Kind.HEARTBEAT, subject, "it has a heartbeat, and is not in the list of workers")
    ahead = fact.heartbeat.last_heartbeat - bearings.now
    if ahead > CLOCK_TOLERANCE:
        detail = f"its last heartbeat is {ahead.total_seconds():.1f} s ahead of the broker's time"
        yield _of(fact, Kind.CLOCKS, f"worker {subject}", detail)


def _of(
    fact: Fact,
    kind: Kind,
    subject: str,
    detail: str,
    *,
    task_id: TaskId | None = None,
    queue: QueueName | None = None,
) -> Finding:
    return Finding(kind=kind, subject=subject, detail=detail, fact=fact, task_id=task_id, queue=queue)


def _of_task(fact: Fact, kind: Kind, task: Task, detail: str, *, subject: str = "") -> Finding:
    return Finding(
        kind=kind,
        subject=subject or task.task_id,
        detail=detail,
        fact=fact,
        task_id=task.task_id,
        queue=task.queue,
    )
