"""Tasks as hash fields: what is written reads back, and only what changed is written."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some
from msgspec.structs import replace

from dtq.adapters.redis.codec import SNAPSHOT, UnreadableRecord, changed_fields, task_of
from dtq.adapters.redis.wire import (
    audit_entry,
    audit_fields,
    event_of,
    heartbeat_fields,
    heartbeat_of,
    json_text,
    pairs,
    read_record,
    record_prefix,
    signal_of,
)
from dtq.domain.events import EventType
from dtq.domain.idempotency import IdempotencyRecord, RecordState
from dtq.domain.status import TaskStatus
from dtq.domain.task import AttemptRecord, Task, WorkerId
from dtq.ports.workers import Signal, SignalKind
from tests.factories import (
    NOW,
    WORKER,
    a_failure,
    a_heartbeat,
    a_task,
    a_task_id,
    an_audit_entry,
    an_event,
)

TEXTS = some.text(some.characters(codec="utf-8"), max_size=20)
MOMENTS = some.integers(0, 10**13).map(lambda number: NOW + timedelta(milliseconds=number - 10**12))
DURATIONS = some.integers(0, 10**10).map(lambda number: timedelta(milliseconds=number))
FAILURES = some.builds(
    lambda text, flag: a_failure(error_class=text, error_message=text, retryable=flag), TEXTS, some.booleans()
)
RECORDS = some.lists(
    some.builds(
        AttemptRecord,
        attempt=some.integers(1, 100),
        started_at=some.none() | MOMENTS,
        finished_at=MOMENTS,
        worker_id=some.none() | some.just(WORKER),
        failure=some.none() | FAILURES,
        retry_delay=some.none() | DURATIONS,
    ),
    max_size=3,
).map(tuple)
TASKS = some.builds(
    a_task,
    status=some.sampled_from(TaskStatus),
    metadata=some.sampled_from(["{}", '{"a": [1, 12345678901234567890]}']),
    idempotency_key=some.none() | some.just("key:with:colons"),
    priority=some.integers(0, 9),
    timeout=DURATIONS,
    created_at=MOMENTS,
    ttl_at=some.none() | MOMENTS,
    started_at=some.none() | MOMENTS,
    duration=some.none() | DURATIONS,
    worker_id=some.none() | some.just(WorkerId("worker-00000009")),
    failure=some.none() | FAILURES,
    retry_delay=some.none() | DURATIONS,
    cancel_requested=some.booleans(),
    result_truncated=some.booleans(),
    history=RECORDS,
    previous_attempts=RECORDS,
    previous_attempts_dropped=some.integers(0, 1000),
    discarded=some.booleans(),
)


def _stored(fields: dict[str, str]) -> list[str | None]:
    return [fields.get(name) for name in SNAPSHOT]


@given(task=TASKS)
def test_what_is_written_reads_back(task: Task) -> None:
    fields = pairs(changed_fields(None, task))

    assert task == task_of(_stored(fields), payload=task.payload)


@given(before=TASKS, after=TASKS)
def test_a_change_writes_what_makes_one_task_the_other(before: Task, after: Task) -> None:
    fields = pairs(changed_fields(None, before)) | pairs(changed_fields(before, after))

    assert after == task_of(_stored(fields), payload=after.payload)


def test_a_change_writes_nothing_that_stayed() -> None:
    task = a_task(status=TaskStatus.RUNNING)

    assert ["attempt", "2", "version", "new"] == changed_fields(task, replace(task, attempt=2, version="new"))


def test_the_payload_is_not_among_the_fields() -> None:
    assert "payload" not in pairs(changed_fields(None, a_task(payload='{"secret": 1}')))


def test_no_record_is_no_task() -> None:
    assert task_of([None] * len(SNAPSHOT)) is None
    assert task_of(None) is None


@pytest.mark.parametrize(
    ("field", "text"),
    [("created_at", "yesterday"), ("status", "sleeping"), ("history", "{"), ("attempt", ""), ("timeout_ms", "9" * 40)],
)
def test_a_record_that_somebody_spoiled_is_said_to_be_unreadable(field: str, text: str) -> None:
    task = a_task(attempt=1)
    fields = pairs(changed_fields(None, task)) | {field: text}
    if not text:
        del fields["created_at"]

    with pytest.raises(UnreadableRecord, match=task.task_id):
        task_of(_stored(fields))


def test_an_event_has_the_members_of_the_contract_in_their_order() -> None:
    event = an_event(type=EventType.TASK_STARTED, task_id=a_task_id(), attempt=2, metadata={"redelivered": True})

    text = json_text(event)

    members = ["event_id", "ts", "type", "task_id", "queue", "task_type", "attempt", "worker_id", "metadata"]
    assert sorted(members, key=lambda name: text.index(f'"{name}":')) == members
    assert '"ts":"2026-01-01T12:00:00Z"' in text
    assert event == event_of(text)


def test_an_idempotency_record_begins_with_its_task() -> None:
    record = IdempotencyRecord(task_id=a_task_id(), state=RecordState.COMPLETED, updated_at=NOW)

    assert json_text(record).startswith(record_prefix(record.task_id) + ",")
    assert record == read_record(json_text(record))


def test_texts_of_strangers_are_no_events_and_no_signals() -> None:
    signal = Signal(kind=SignalKind.CANCEL, task_id=a_task_id())

    assert signal == signal_of(json_text(signal))
    assert (None, None) == (signal_of("work"), signal_of('{"kind":"dance"}'))
    assert (None, None) == (event_of(""), event_of('{"event_id":1}'))


def test_heartbeats_and_audit_entries_read_back() -> None:
    heartbeat = a_heartbeat(active_tasks=3, task_types=("a:b", "c.d"), visibility_timeout=timedelta(seconds=2.5))
    entry = an_audit_entry(count=0, task_id=a_task_id())

    assert heartbeat == heartbeat_of(heartbeat_fields(heartbeat))
    assert heartbeat_of({}) is None
    assert entry == audit_entry(audit_fields(entry))
