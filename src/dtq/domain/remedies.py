"""What repairs a finding, if anything does that cannot do harm: a change of a task, or one of a few small acts.

Each names what it was decided on, and is refused by the broker where that is not so any more.
"""

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from dtq.domain.acts import (
    Act,
    BuryEntry,
    DropConsumers,
    Forget,
    HandBack,
    Introduce,
    Limit,
    Persist,
    Prolong,
    Recount,
    Register,
    RemoveEntry,
    RemoveLetter,
    Rewind,
    RewriteKey,
    Shorten,
    Strike,
)
from dtq.domain.audit import AuditEntry
from dtq.domain.change import Change
from dtq.domain.decision import Drop
from dtq.domain.entry import rebuild
from dtq.domain.facts import (
    ConsumerFact,
    CountFact,
    EntryFact,
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
from dtq.domain.findings import Finding, Kind
from dtq.domain.idempotency import IdempotencyRecord, state_of
from dtq.domain.lifecycle import name_again, rebury, reenter, rehome, reschedule, restore
from dtq.domain.retention import LEAD_TERM, Retention, mark_lifetime, record_lifetime, task_lifetime
from dtq.domain.task import NO_VERSION, EntryId, QueueName, Task, Version

HEARTBEAT_LIFETIME: Final = timedelta(seconds=15)
"""What a heartbeat of unknown age gets; a worker that lives writes it anew before that."""


class Pharmacy(Struct, frozen=True, kw_only=True):
    """What a repair is made of beside the finding: the time, a new token, the audit entry, how long things are kept."""

    now: datetime
    token: Version
    audit: AuditEntry
    retention: Retention


def remedy(finding: Finding, *, using: Pharmacy) -> Change | Act | None:
    """Return what repairs *finding*, None where nothing does that is safe."""
    fact = finding.fact
    match fact:
        case TaskFact():
            return _of_task(finding.kind, fact, using=using)
        case EntryFact():
            return _of_entry(finding.kind, fact, using=using)
        case KeyFact():
            return _of_key(fact, using=using)
        case MemberFact(record=record) if finding.kind is Kind.MISTIMED:
            return _of_member(record.task, using=using)
        case NameFact() if finding.kind in {Kind.ETERNAL, Kind.LOCK, Kind.SHORT}:
            return _of_short(fact, using=using) if finding.kind is Kind.SHORT else _of_name(fact, using=using)
        case QueueFact() if finding.kind is Kind.BAD_NAME:
            return Strike(fact.name)
        case QueueFact():
            return Register(QueueName(fact.name))
        case _:
            return _of_another(finding)


def _of_another(finding: Finding) -> Act | None:
    fact = finding.fact
    match fact:
        case MemberFact():
            return Forget(fact.task_id, fact.record.task.version if fact.record.task else NO_VERSION)
        case LetterFact(record=record) if record.task is not None:
            return RemoveLetter(fact.entry_id, record.task.task_id, record.task.version)
        case ConsumerFact(owns=0):
            return DropConsumers(fact.queue)
        case CountFact():
            return Recount(fact)
        case ReadingFact():
            return Rewind(fact.queue, fact.ahead)
        case HeartbeatFact() if finding.kind is Kind.HEARTBEAT:
            return Introduce(fact.worker)
        case _:
            return None


def _of_task(kind: Kind, fact: TaskFact, *, using: Pharmacy) -> Change | Act | None:
    task = fact.record.task
    if task is None:
        return None
    if kind in {Kind.HOMELESS, Kind.HOLLOW_ENTRY}:
        place = rehome if kind is Kind.HOMELESS else reenter
        return _made(place(task, now=using.now, token=using.token, audit=using.audit))
    if kind is Kind.LETTER_MISSING:
        return _of_unlettered(task, fact.letter, using=using)
    if kind is Kind.KEY and task.idempotency_key is not None:
        stored = "" if fact.unkeyed or fact.key is None else fact.key.text
        return _of_record(task, key=task.idempotency_key, text=stored, using=using)
    if kind is Kind.ABANDONED and task.receipt is not None:
        # what was never read, as far as the group knows, is delivered again once there is a group
        return HandBack(task.receipt, fact.owner) if fact.owner or fact.passed else Register(task.queue)
    return None


def _of_unlettered(task: Task, letter: EntryId | None, *, using: Pharmacy) -> Change | None:
    if task.dlq_entry_id is None and letter is not None:
        return _made(name_again(task, letter=letter, now=using.now, token=using.token, audit=using.audit))
    if task.failure is None or task.dlq_entry_id is None:
        # somebody wrote the status by hand, it seems, and who knows what was meant
        return None
    return _made(rebury(task, now=using.now, token=using.token, audit=using.audit))


def _of_member(task: Task | None, *, using: Pharmacy) -> Change | None:
    if task is None:
        return None
    return _made(reschedule(task, now=using.now, token=using.token, audit=using.audit))


def _made(decision: Change | Drop) -> Change | None:
    """Return what is to be made; None where the task is no longer one to be mended so."""
    return decision if isinstance(decision, Change) else None


def _of_entry(kind: Kind, fact: EntryFact, *, using: Pharmacy) -> Change | Act | None:
    if kind is Kind.SURPLUS_ENTRY or fact.cancelled:
        return RemoveEntry(receipt=fact.receipt, task_id=fact.task_id, task=fact.record.task)
    rebuilt = rebuild(fact.fields, receipt=fact.receipt)
    if rebuilt is None:
        return BuryEntry(fact=fact)
    return restore(rebuilt, now=using.now, token=using.token, audit=using.audit)


def _of_key(fact: KeyFact, *, using: Pharmacy) -> Act:
    task = fact.record.task
    if task is not None and fact.is_of_its_key:
        return _of_record(task, key=fact.key, text=fact.text, using=using)
    lifetime = using.retention.idempotency
    return RewriteKey(queue=fact.queue, key=fact.key, text=fact.text, record=None, lifetime=lifetime)


def _of_record(task: Task, *, key: str, text: str, using: Pharmacy) -> Act:
    record = IdempotencyRecord(task_id=task.task_id, state=state_of(task.status), updated_at=using.now)
    lifetime = record_lifetime(task, at=using.now, retention=using.retention)
    return RewriteKey(queue=task.queue, key=key, text=text, record=record, lifetime=lifetime)


def _of_short(fact: NameFact, *, using: Pharmacy) -> Act | None:
    task = fact.record.task
    if task is None:
        return Persist(fact.name) if fact.role is Role.BOUNDED else None
    needed = task_lifetime if fact.role is Role.TASK else record_lifetime
    return Prolong(fact.name, needed(task, at=using.now, retention=using.retention), task.task_id, task.version)


def _of_name(fact: NameFact, *, using: Pharmacy) -> Act | None:
    task, retention = fact.record.task, using.retention
    match fact.role:
        case Role.TASK:
            lifetime = retention.task if task is None else task_lifetime(task, at=using.now, retention=retention)
        case Role.KEY:
            lifetime = (
                retention.idempotency if task is None else record_lifetime(task, at=using.now, retention=retention)
            )
        case Role.RESULT:
            lifetime = retention.result
        case Role.MARKS:
            lifetime = mark_lifetime(retention)
        case Role.HEARTBEAT:
            lifetime = HEARTBEAT_LIFETIME
        case Role.LOCK:
            # a leader that lives and renews it has it for no longer, and one that took it meanwhile keeps it so
            return Shorten(fact.name, LEAD_TERM)
        case _:
            return None
    return Limit(fact.name, lifetime)
