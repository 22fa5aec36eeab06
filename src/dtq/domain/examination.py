"""What is wrong with a stored thing, from what was read of it; with a task, and what names one: examined_tasks.py.

Repairs: domain/remedies.py, words: domain/diagnoses.py.

A thing in motion is never wrong by these rules if it was read in one step; what takes time to right itself, such as the
consumer of a worker that has just gone, is believed only at an age.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from dtq.domain.admission import QUEUE_PATTERN
from dtq.domain.examined_tasks import of_a_task
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
from dtq.domain.findings import Bearings, Finding, Kind, of_fact, of_task, shown
from dtq.domain.retention import LEAD_TERM, is_short
from dtq.domain.task import QueueName
from dtq.domain.timing import CLOCK_TOLERANCE

CONSUMER_AGE: Final = timedelta(seconds=90)
"""For how long a consumer may outlive its worker: the leader removes them once a minute."""

_OF_TASKS: Final = frozenset({Role.TASK, Role.KEY})


def examine(fact: Fact, *, bearings: Bearings) -> Iterator[Finding]:
    """Say everything that is wrong with one thing."""
    match fact:
        case TaskFact() | EntryFact() | MemberFact() | LetterFact() | KeyFact():
            yield from of_a_task(fact, bearings=bearings)
        case _:
            yield from _around(fact, bearings=bearings)


def _around(
    fact: NameFact | ConsumerFact | QueueFact | ReadingFact | CountFact | HeartbeatFact, *, bearings: Bearings
) -> Iterator[Finding]:
    match fact:
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


def _name(fact: NameFact, *, bearings: Bearings) -> Iterator[Finding]:
    if fact.last_id == LAST_ENTRY_ID:
        yield of_fact(fact, Kind.EXHAUSTED, shown(fact.name), f"its last id is {fact.last_id}, and none comes after it")
    if fact.role is Role.FOREIGN:
        yield of_fact(fact, Kind.FOREIGN, shown(fact.name), "no key of dtq has this name")
    elif fact.wrong_type:
        yield of_fact(fact, Kind.WRONG_TYPE, shown(fact.name), f"it is a {fact.wrong_type}")
    elif fact.role is Role.LOCK and fact.lifetime > LEAD_TERM:
        detail = f"it lives for another {fact.lifetime.total_seconds():.0f} s, and a lock for {LEAD_TERM.seconds} s"
        yield of_fact(fact, Kind.LOCK, shown(fact.name), detail)
    elif fact.is_eternal and fact.role is not Role.BOUNDED:
        kind = Kind.LOCK if fact.role is Role.LOCK else Kind.ETERNAL
        task = fact.record.task
        detail = "it has no lifetime"
        found = of_fact(fact, kind, shown(fact.name), detail, task_id=fact.task_id)
        yield found if task is None else of_task(fact, kind, task, detail, subject=found.subject)
    elif fact.lifetime:
        yield from _short(fact, bearings=bearings)


def _short(fact: NameFact, *, bearings: Bearings) -> Iterator[Finding]:
    task, subject = fact.record.task, shown(fact.name)
    detail = f"it is gone in {fact.lifetime.total_seconds():.0f} s"
    if fact.role is Role.BOUNDED:
        yield of_fact(fact, Kind.SHORT, subject, f"{detail}, and is to stay")
    elif fact.role in _OF_TASKS and task is not None and is_short(task, left=fact.lifetime, at=bearings.now):
        yield of_task(fact, Kind.SHORT, task, f"{detail}, and its task is {task.status}", subject=subject)


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
        yield of_fact(fact, Kind.BAD_NAME, shown(fact.name), "no queue can have this name")
        return
    queue = QueueName(fact.name)
    if not fact.is_registered:
        has = "it has keys" if fact.waiting is None else f"task {fact.waiting} is in it"
        detail = f"{has}, and it is not in the list of queues"
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
    # a server adds to nothing that is written otherwise, such as 03
    if fact.text != str(fact.counted):
        says = f"says {shown(fact.text)}, and {fact.counted} are scheduled"
        yield Finding(kind=Kind.COUNT, subject=fact.queue, detail=says, fact=fact, queue=fact.queue)


def _heartbeat(fact: HeartbeatFact, *, bearings: Bearings) -> Iterator[Finding]:
    subject = shown(fact.worker)
    if fact.heartbeat is None:
        yield of_fact(fact, Kind.UNREADABLE, f"worker {subject}", "the heartbeat cannot be read")
        return
    if not fact.is_known:
        yield of_fact(fact, Kind.HEARTBEAT, subject, "it has a heartbeat, and is not in the list of workers")
    ahead = fact.heartbeat.last_heartbeat - bearings.now
    if ahead > CLOCK_TOLERANCE:
        detail = f"its last heartbeat is {ahead.total_seconds():.1f} s ahead of the broker's time"
        yield of_fact(fact, Kind.CLOCKS, f"worker {subject}", detail)
