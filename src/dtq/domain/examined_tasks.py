"""What is wrong with a task, or with what names one: an entry, a scheduled id, a dead letter, an idempotency record."""

from collections.abc import Iterator
from typing import Final

from dtq.domain.entry import rebuild
from dtq.domain.facts import EntryFact, KeyFact, LetterFact, MemberFact, TaskFact
from dtq.domain.findings import Bearings, Finding, Kind, of_fact, of_task, shown
from dtq.domain.idempotency import RecordState, state_of
from dtq.domain.status import Place
from dtq.domain.task import Task, TaskId, place_of
from dtq.domain.timing import CLOCK_TOLERANCE, mistimed

_IN_STREAMS: Final = frozenset({Place.READY, Place.HELD})


def of_a_task(
    fact: TaskFact | EntryFact | MemberFact | LetterFact | KeyFact, *, bearings: Bearings
) -> Iterator[Finding]:
    """Say everything that is wrong with a task, or with what names one."""
    match fact:
        case TaskFact():
            yield from _task(fact, bearings=bearings)
        case EntryFact():
            yield from _entry(fact)
        case MemberFact():
            yield from _member(fact, bearings=bearings)
        case LetterFact():
            yield from _letter(fact)
        case KeyFact():
            yield from _key(fact)


def _task(fact: TaskFact, *, bearings: Bearings) -> Iterator[Finding]:
    task = fact.record.task
    if fact.record.fault:
        loses = "; it waits for its time: deleting its record loses it" if fact.scheduled else ""
        detail = f"its record cannot be read: {fact.record.fault}{loses}"
        yield of_fact(fact, Kind.UNREADABLE, fact.task_id, detail, task_id=fact.task_id)
    if task is None:
        return
    unguarded = None if task.idempotency_key is None or task.is_terminal else _unguarded(fact)
    if unguarded is not None:
        detail = f"its key {shown(task.idempotency_key or '')} guards nothing: {unguarded}"
        yield of_task(fact, Kind.KEY, task, f"{task.status}, and {detail}")
    if fact.mistaken:
        yield of_task(fact, Kind.UNREADABLE, task, _mistaken(task))
        return
    yield from _placed(fact, task, bearings=bearings)


def _placed(fact: TaskFact, task: Task, *, bearings: Bearings) -> Iterator[Finding]:
    place = place_of(task)
    if not fact.has_payload and place is not Place.NOWHERE:
        is_lost = place is Place.SCHEDULE or fact.hollow
        advice = " set it again, or cancel it and submit it anew" if is_lost else " see docs/doctor.md"
        yield of_task(fact, Kind.UNREADABLE, task, f"{task.status}, and it has no payload:{advice}")
    elif fact.hollow:
        yield of_task(fact, Kind.HOLLOW_ENTRY, task, f"{task.status}, and its entry {task.entry_id} has no payload")
    if place is Place.SCHEDULE and not fact.scheduled:
        yield of_task(fact, Kind.HOMELESS, task, f"{task.status}, and neither scheduled nor on loan")
    if place in _IN_STREAMS and not fact.entered:
        yield of_task(fact, Kind.HOMELESS, task, f"{task.status}, and its entry {task.entry_id} is gone")
    if place in _IN_STREAMS and fact.entered:
        yield from _held(fact, task, bearings=bearings)
    if place is Place.DEAD and not fact.lettered and not _is_explained(fact, task, bearings=bearings):
        yield of_task(fact, Kind.LETTER_MISSING, task, _unlettered(fact, task))


def _unlettered(fact: TaskFact, task: Task) -> str:
    if task.dlq_entry_id is not None:
        return f"its dead letter {task.dlq_entry_id} is gone"
    stands = "and none names it: see docs/doctor.md" if fact.letter is None else f"and {fact.letter} names it"
    return f"its record names no dead letter, {stands}"


def _mistaken(task: Task) -> str:
    field, stored = ("dlq_entry_id", task.dlq_entry_id) if place_of(task) is Place.DEAD else ("entry_id", task.entry_id)
    return f"{task.status}, and its {field} {stored} is another task's: set that to 0-1, and repair"


def _unguarded(fact: TaskFact) -> str | None:
    """Say why nothing keeps a second task of the same key away; None where something does, or has ended so."""
    if fact.unkeyed:
        return "nothing is stored under it"
    return None if fact.key is None or fact.key.is_of_its_key else _key_fault(fact.key)


def _held(fact: TaskFact, task: Task, *, bearings: Bearings) -> Iterator[Finding]:
    if fact.owner is None:
        if fact.passed or (place_of(task) is Place.HELD and not fact.fresh):
            yield of_task(fact, Kind.ABANDONED, task, f"{task.status}, and nobody owns its entry {task.entry_id}")
        return
    is_handed_back = fact.idle >= bearings.handed_back
    if fact.idle >= bearings.abandoned_after and not (is_handed_back or fact.owner_lives or fact.paused):
        silent = f"its owner {shown(fact.owner)} is silent for {fact.idle.total_seconds():.0f} s"
        yield of_task(fact, Kind.ABANDONED, task, f"{task.status}, and {silent}")


def _is_explained(fact: TaskFact, task: Task, *, bearings: Bearings) -> bool:
    """Tell whether a dead letter that is not there may have been trimmed or purged, as letters may be."""
    if task.finished_at is None or task.dlq_entry_id is None:
        # dtq gives nothing up without these: somebody wrote the status by hand
        return False
    return fact.trimmed or task.finished_at < bearings.letters_kept_since


def _entry(fact: EntryFact) -> Iterator[Finding]:
    task, address = fact.record.task, f"{fact.receipt.queue} p{fact.receipt.priority} {fact.receipt.entry_id}"
    if fact.record.is_missing:
        words = "is marked as cancelled" if fact.cancelled else "has no record"
        if fact.fields and not fact.cancelled and rebuild(fact.fields, receipt=fact.receipt) is None:
            words = "is none that could run"
        named, queue = TaskId(shown(fact.task_id)), fact.receipt.queue
        detail = f"its task {named} {words}" if named else "it names no task"
        yield of_fact(fact, Kind.ORPHAN_ENTRY, address, detail, task_id=named or None, queue=queue)
    if task is not None and (place_of(task) not in _IN_STREAMS or task.receipt != fact.receipt):
        lives = f"lives in the {place_of(task).value} place" if not task.is_terminal else "has ended"
        if place_of(task) in _IN_STREAMS:
            lives = f"names entry {task.entry_id} as its own"
        yield of_task(fact, Kind.SURPLUS_ENTRY, task, f"its task {lives}", subject=address)


def _member(fact: MemberFact, *, bearings: Bearings) -> Iterator[Finding]:
    task = fact.record.task
    if fact.record.is_missing:
        named = TaskId(shown(fact.task_id))
        detail = "no record of it is stored: the task is lost; submit it again"
        yield of_fact(fact, Kind.STRAY_MEMBER, fact.task_id, detail, task_id=named)
    if task is not None and place_of(task) is not Place.SCHEDULE:
        yield of_task(fact, Kind.STRAY_MEMBER, task, f"its task is {task.status} and waits for no time")
    elif task is not None:
        latest = bearings.now + CLOCK_TOLERANCE
        wrong = mistimed(task, due=fact.due, claimed_at=fact.claimed_at, now=latest)
        yield from () if wrong is None else (of_task(fact, Kind.MISTIMED, task, wrong),)


def _letter(fact: LetterFact) -> Iterator[Finding]:
    task = fact.record.task
    if task is not None and place_of(task) is Place.DEAD and task.dlq_entry_id is None:
        # it may be the one that its record does not name any more
        return
    if task is not None and (place_of(task) is not Place.DEAD or task.dlq_entry_id != fact.entry_id):
        says = "was discarded" if task.discarded else f"is {task.status}"
        if place_of(task) is Place.DEAD:
            says = f"names letter {task.dlq_entry_id} as its own"
        yield of_task(fact, Kind.LETTER_SURPLUS, task, f"its task {task.task_id} {says}", subject=fact.entry_id)


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
