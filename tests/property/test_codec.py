"""What Redis is given comes back as it was, and what somebody else wrote there is an error with a name."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dtq.adapters.redis.codec import SNAPSHOT, VERSION, UnreadableRecord, task_of
from dtq.adapters.redis.wire import (
    audit_entry,
    audit_fields,
    event_of,
    flat,
    heartbeat_fields,
    heartbeat_of,
    json_text,
    pairs,
    read_record,
    record_prefix,
    signal_of,
)
from dtq.domain.admission import MAX_TIMEOUT_MS
from dtq.domain.audit import AuditEntry
from dtq.domain.entry import moment
from dtq.domain.events import Event, EventType
from dtq.domain.idempotency import IdempotencyRecord, RecordState
from dtq.domain.status import TaskStatus
from dtq.domain.task import (
    AttemptRecord,
    EntryId,
    Failure,
    LeaseToken,
    Task,
    TaskId,
    Version,
    WorkerId,
)
from dtq.domain.workers import Heartbeat, WorkerStatus
from dtq.ports.workers import Signal, SignalKind
from tests.adapters.redis.sent import written
from tests.domain.factories import TASK_ID
from tests.factories import made_possible
from tests.property.strategies import MILLISECOND, json_texts, keys, queues, task_types, texts, wild_texts

LAST_MS: Final = 253_402_300_799_999
TASK_IDS = st.text("0123456789abcdef", min_size=32, max_size=32).map(TaskId)
TIMES = st.integers(0, LAST_MS).map(moment)
DURATIONS = st.integers(0, 10**12).map(lambda count: count * MILLISECOND)
TIMEOUTS = st.integers(1, MAX_TIMEOUT_MS).map(lambda count: count * MILLISECOND)
COUNTS = st.integers(0, 10**12)
SOME_TEXT = texts.filter(bool)
WORKERS = SOME_TEXT.map(WorkerId)
ENTRY_IDS = st.tuples(COUNTS, COUNTS).map(lambda parts: EntryId(f"{parts[0]}-{parts[1]}"))

failures = st.builds(Failure, error_class=texts, error_message=texts, retryable=st.booleans())
attempts = st.builds(
    AttemptRecord,
    attempt=st.integers(0, 100),
    started_at=st.none() | TIMES,
    finished_at=TIMES,
    worker_id=st.none() | WORKERS,
    failure=st.none() | failures,
    retry_delay=st.none() | DURATIONS,
)
histories = st.lists(attempts, max_size=3).map(tuple)
tasks = st.builds(
    Task,
    task_id=TASK_IDS,
    queue=queues,
    task_type=task_types,
    priority=st.integers(0, 9),
    max_attempts=st.integers(1, 100),
    timeout=TIMEOUTS,
    created_at=TIMES,
    available_at=TIMES,
    status=st.sampled_from(TaskStatus),
    payload=st.none() | json_texts(),
    metadata=json_texts(),
    idempotency_key=st.none() | keys,
    ttl_at=st.none() | TIMES,
    attempt=st.integers(0, 100),
    started_at=st.none() | TIMES,
    finished_at=st.none() | TIMES,
    duration=st.none() | DURATIONS,
    worker_id=st.none() | WORKERS,
    failure=st.none() | failures,
    retry_delay=st.none() | DURATIONS,
    cancel_requested=st.booleans(),
    result_truncated=st.booleans(),
    history=histories,
    requeued_at=st.none() | TIMES,
    previous_attempts=histories,
    previous_attempts_dropped=COUNTS,
    discarded=st.booleans(),
    entry_id=st.none() | ENTRY_IDS,
    lease=st.none() | SOME_TEXT.map(LeaseToken),
    dlq_entry_id=st.none() | ENTRY_IDS,
    version=SOME_TEXT.map(Version),
).map(made_possible)


def stored(*steps: list[str]) -> list[str | None]:
    """The values of a snapshot after *steps* have been written one over the other."""
    record: dict[str, str] = {}
    for step in steps:
        record.update(pairs(step))
    return [record.get(name) for name in SNAPSHOT]


@given(task=tasks)
def test_a_new_record_is_read_as_the_task_that_was_written(task: Task) -> None:
    assert task == task_of(stored(written(None, task)), task_id=task.task_id, payload=task.payload)


@given(before=tasks, after=tasks)
def test_a_record_is_read_as_the_task_after_its_last_change(before: Task, after: Task) -> None:
    values = stored(written(None, before), written(before, after))

    assert after == task_of(values, task_id=after.task_id, payload=after.payload)


@given(task=tasks)
def test_of_a_change_only_what_it_changed_is_written_and_its_version(task: Task) -> None:
    assert [VERSION, task.version] == written(task, task)


@given(task=tasks)
def test_neither_payload_nor_tokens_are_part_of_a_record_that_is_read(task: Task) -> None:
    assert {"payload", "tokens"}.isdisjoint([*SNAPSHOT, *pairs(written(None, task))])


@given(values=st.lists(st.none() | wild_texts | st.integers().map(str), min_size=len(SNAPSHOT), max_size=len(SNAPSHOT)))
def test_a_record_of_another_hand_is_a_task_none_or_an_error_with_a_name(values: list[str | None]) -> None:
    try:
        task = task_of(values, task_id=TASK_ID)
    except UnreadableRecord:
        return

    assert (task is None) == (not values[0])


@given(task=tasks, broken=st.sampled_from(["created_at", "status", "attempt", "history", "timeout_ms"]))
def test_a_record_with_a_broken_field_is_an_error_that_names_the_task(task: Task, broken: str) -> None:
    values = stored(written(None, task), [broken, "?"])

    with pytest.raises(UnreadableRecord, match=task.task_id):
        task_of(values, task_id=task.task_id)


def test_no_record_is_no_task() -> None:
    assert (None, None) == (task_of(None, task_id=TASK_ID), task_of(stored(), task_id=TASK_ID))


events = st.builds(
    Event,
    event_id=texts,
    ts=TIMES,
    type=st.sampled_from(EventType),
    task_id=st.none() | TASK_IDS,
    queue=st.none() | queues,
    task_type=st.none() | task_types,
    attempt=st.none() | st.integers(0, 100),
    worker_id=st.none() | WORKERS,
    metadata=st.none() | st.dictionaries(texts, texts | st.booleans() | st.integers(-(2**53), 2**53), max_size=3),
)
signals = st.builds(Signal, kind=st.sampled_from(SignalKind), task_id=st.none() | TASK_IDS)
records = st.builds(IdempotencyRecord, task_id=TASK_IDS, state=st.sampled_from(RecordState), updated_at=TIMES)
heartbeats = st.builds(
    Heartbeat,
    worker_id=WORKERS,
    hostname=texts,
    started_at=TIMES,
    last_heartbeat=TIMES,
    queue=queues,
    concurrency=COUNTS,
    status=st.sampled_from(WorkerStatus),
    active_tasks=COUNTS,
    tasks_processed=COUNTS,
    tasks_failed=COUNTS,
    tasks_retried=COUNTS,
    task_types=st.lists(task_types, max_size=3).map(tuple),
    visibility_timeout=DURATIONS,
    life=texts,
)


@given(event=events)
def test_an_event_is_read_as_it_was_published(event: Event) -> None:
    assert event == event_of(json_text(event))


@given(signal=signals)
def test_a_signal_is_read_as_it_was_told(signal: Signal) -> None:
    assert signal == signal_of(json_text(signal))


@given(text=wild_texts | json_texts())
def test_what_is_no_event_and_no_signal_is_passed_over(text: str) -> None:
    assert (None, None) == (event_of(text), signal_of(text))


@given(record=records, other=TASK_IDS)
def test_a_record_is_read_as_it_was_written_and_known_by_its_beginning(
    record: IdempotencyRecord, other: TaskId
) -> None:
    text = json_text(record)

    assert record == read_record(text)
    assert text.startswith(record_prefix(record.task_id))
    assert (other == record.task_id) == text.startswith(record_prefix(other))


@given(
    entry=st.builds(
        AuditEntry,
        actor=texts,
        action=texts,
        ts=TIMES,
        request_id=texts,
        task_id=st.none() | TASK_IDS,
        queue=st.none() | queues,
    ),
    count=st.none() | COUNTS,
)
def test_an_audit_entry_is_read_as_it_was_written(entry: AuditEntry, count: int | None) -> None:
    fields = pairs([*flat(audit_fields(entry)), "count", "" if count is None else str(count)])

    read = audit_entry(fields)

    assert replace(entry, count=count) == read


@given(heartbeat=heartbeats)
def test_a_heartbeat_is_read_as_it_was_written(heartbeat: Heartbeat) -> None:
    assert heartbeat == heartbeat_of(heartbeat_fields(heartbeat))


@given(heartbeat=heartbeats, missing=st.integers(0, 12))
def test_a_heartbeat_that_is_not_whole_is_none(heartbeat: Heartbeat, missing: int) -> None:
    fields = heartbeat_fields(heartbeat)
    # an earlier version of dtq has written none
    del fields[sorted(fields.keys() - {"life"})[missing]]

    assert heartbeat_of(fields) is None
