"""Facts to be judged, and how tests ask what is found in them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from dtq.domain.audit import audited
from dtq.domain.examination import examine
from dtq.domain.facts import (
    EntryFact,
    Fact,
    KeyFact,
    Record,
    TaskFact,
)
from dtq.domain.findings import Bearings, Finding, Kind
from dtq.domain.idempotency import IdempotencyRecord, RecordState
from dtq.domain.remedies import Pharmacy
from dtq.domain.retention import Retention
from dtq.domain.status import TaskStatus
from dtq.domain.task import EntryId, LeaseToken, Receipt, Task, Version
from tests.factories import NOW, OPERATOR, QUEUE, WORKER, a_failure, a_task

OWN, OTHER = EntryId("5-0"), EntryId("6-0")
BEARINGS = Bearings(
    now=NOW,
    abandoned_after=timedelta(seconds=60),
    handed_back=timedelta(hours=12),
    letters_kept_since=datetime(1970, 1, 1, tzinfo=UTC),
    swept_since=NOW - timedelta(days=1),
)
USING = Pharmacy(now=NOW, token=Version("new"), audit=audited("doctor", by=OPERATOR, at=NOW), retention=Retention())

QUEUED = a_task(status=TaskStatus.QUEUED, entry_id=OWN)
PENDING = a_task(status=TaskStatus.PENDING, entry_id=None)
RUNNING = a_task(status=TaskStatus.RUNNING, entry_id=OWN, attempt=1, lease=LeaseToken("held"), worker_id=WORKER)
DEAD = a_task(status=TaskStatus.DEAD_LETTERED, dlq_entry_id=OWN, attempt=1, finished_at=NOW, failure=a_failure())
ENDED = a_task(status=TaskStatus.SUCCEEDED, attempt=1, finished_at=NOW)
ALL = (QUEUED, PENDING, RUNNING, DEAD, ENDED)


def found(fact: Fact, *, bearings: Bearings = BEARINGS) -> list[Finding]:
    return [*examine(fact, bearings=bearings)]


def kinds(fact: Fact, *, bearings: Bearings = BEARINGS) -> list[Kind]:
    return [one.kind for one in found(fact, bearings=bearings)]


def of_task(task: Task, **places: Any) -> TaskFact:
    return TaskFact(task_id=task.task_id, record=Record(task), **places)


def at_home(task: Task) -> TaskFact:
    return of_task(task, entered=True, owner=WORKER, owner_lives=True, scheduled=True, lettered=True)


def an_entry(task: Task | None, *, entry_id: EntryId = OWN, **rest: Any) -> EntryFact:
    task_id = QUEUED.task_id if task is None else task.task_id
    return EntryFact(receipt=Receipt(QUEUE, QUEUED.priority, entry_id), task_id=task_id, record=Record(task), **rest)


def a_key(task: Task | None, *, state: RecordState, is_read: bool = True) -> KeyFact:
    named = IdempotencyRecord(task_id=QUEUED.task_id, state=state, updated_at=NOW) if is_read else None
    return KeyFact(queue=QUEUE, key="k", text="{}", named=named, record=Record(task))


def keyed(task: Task) -> Task:
    return replace(task, idempotency_key="k")
