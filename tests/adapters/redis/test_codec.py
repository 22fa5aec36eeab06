"""Tasks as hash fields: what is written reads back, and only what changed is written."""

import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some
from msgspec.structs import replace

from dtq.adapters.redis.codec import SNAPSHOT, UnreadableRecord, task_of
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
from dtq.domain.task import AttemptRecord, EntryId, Task, TaskId, WorkerId
from dtq.ports.workers import Signal, SignalKind
from tests.adapters.redis.sent import written
from tests.factories import (
    NOW,
    WORKER,
    a_failure,
    a_heartbeat,
    a_task,
    a_task_id,
    an_audit_entry,
    an_event,
    made_possible,
)

TEXTS = some.text(some.characters(codec="utf-8"), max_size=20)
MOMENTS = some.integers(0, 10**13).map(lambda number: NOW + timedelta(milliseconds=number - 10**12))
TIMEOUTS = some.integers(1, 3_600_000).map(lambda number: timedelta(milliseconds=number))
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
    timeout=TIMEOUTS,
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
).map(made_possible)


def _stored(fields: dict[str, str]) -> list[str | None]:
    return [fields.get(name) for name in SNAPSHOT]


@given(task=TASKS)
def test_what_is_written_reads_back(task: Task) -> None:
    fields = pairs(written(None, task))

    assert task == task_of(_stored(fields), task_id=task.task_id, payload=task.payload)


@given(before=TASKS, after=TASKS)
def test_a_change_writes_what_makes_one_task_the_other(before: Task, after: Task) -> None:
    fields = pairs(written(None, before)) | pairs(written(before, after))

    assert after == task_of(_stored(fields), task_id=after.task_id, payload=after.payload)


def test_a_change_writes_nothing_that_stayed() -> None:
    task = a_task(status=TaskStatus.RUNNING)

    assert ["attempt", "2", "version", "new"] == written(task, replace(task, attempt=2, version="new"))


def test_a_new_record_says_nothing_of_what_has_not_happened() -> None:
    unsaid = {"cancel_requested", "result_truncated", "history", "previous_attempts", "discarded"}

    assert pairs(written(None, a_task())).keys().isdisjoint({*unsaid, "previous_attempts_dropped"})


def test_the_payload_is_not_among_the_fields() -> None:
    assert "payload" not in pairs(written(None, a_task(payload='{"secret": 1}')))


def test_no_record_is_no_task() -> None:
    assert task_of([None] * len(SNAPSHOT), task_id=a_task_id()) is None
    assert task_of(None, task_id=a_task_id()) is None


DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("created_at", "yesterday"),
        ("created_at", "-1"),
        ("status", "sleeping"),
        ("history", "{"),
        ("history", f'[{{"x":{DEEP}'),
        ("history", f'[{{"attempt":{10**30},"finished_at":0}}]'),
        ("previous_attempts", f'[{{"x":{DEEP}'),
        ("attempt", "-5"),
        ("attempt", "9" * 24),
        ("max_attempts", "0"),
        ("lease", "x"),
        ("discarded", "1"),
        ("timeout_ms", "9" * 40),
        ("entry_id", "now"),
        ("entry_id", f"{2**64}-0"),
        ("dlq_entry_id", f"0-{2**64}"),
        ("task_id", f"{7:032x}"),
    ],
    ids=lambda text: text[:12],
)
def test_a_record_that_somebody_spoiled_is_said_to_be_unreadable(field: str, text: str) -> None:
    task = a_task(task_id=TaskId(f"{6:032x}"))
    fields = pairs(written(None, task)) | {field: text}

    with pytest.raises(UnreadableRecord, match=task.task_id) as raised:
        task_of(_stored(fields), task_id=task.task_id)
    assert re.search(rf"\b{field}\b", raised.value.why), raised.value.why
    assert len(raised.value.why) < 120


@pytest.mark.parametrize(
    ("field", "text", "why"),
    [
        ("max_attempts", "banana", 'max_attempts is "banana", not a number'),
        ("created_at", "9" * 41, f'created_at is "{"9" * 40}...", out of bounds'),
        ("timeout_ms", "1.5", 'timeout_ms is "1.5", not a number'),
        ("timeout_ms", "3_0000", 'timeout_ms is "3_0000", not a number'),
        ("max_attempts", " 3 ", 'max_attempts is " 3 ", not a number'),
        ("max_attempts", "+3", 'max_attempts is "+3", not a number'),
        ("available_at", "\u0661\u0662", 'available_at is "\u0661\u0662", not a number'),
        ("version", "", "version is missing"),
        ("status", "fly\ning", 'status is "fly ing", no status'),
        ("entry_id", "now", 'entry_id is "now", no id of a stream entry'),
        ("version", "\ufffd", 'version is "\ufffd", not text, which nothing can be compared with'),
        ("history", '[{"error_message":"the password is x"}]', "history is no list of attempts"),
        ("priority", "10", "priority is 10, not within 0..9"),
        ("task_id", f"{7:032x}", f'task_id is "{7:032x}", that of another task'),
        ("task_type", "", "task_type is missing"),
    ],
    ids=lambda text: text[:12],
)
def test_what_is_wrong_names_its_field_and_shows_what_it_is(field: str, text: str, why: str) -> None:
    task = a_task(task_id=TaskId(f"{6:032x}"))
    fields = pairs(written(None, task)) | {field: text}

    with pytest.raises(UnreadableRecord) as raised:
        task_of(_stored(fields), task_id=task.task_id)

    assert (why, f"the record of task {task.task_id} cannot be read: {why}") == (raised.value.why, str(raised.value))


def test_a_record_that_lacks_a_field_is_said_to_be_unreadable() -> None:
    task = a_task()
    fields = pairs(written(None, task))
    del fields["created_at"]

    with pytest.raises(UnreadableRecord, match=task.task_id):
        task_of(_stored(fields), task_id=task.task_id)


@pytest.mark.parametrize("field", SNAPSHOT)
def test_a_record_of_which_anything_is_left_is_no_missing_one(field: str) -> None:
    assert task_of([None] * len(SNAPSHOT), task_id=f"{6:032x}") is None
    with pytest.raises(UnreadableRecord):
        task_of(_stored({field: "left"}), task_id=f"{6:032x}")


@pytest.mark.parametrize("entry_id", ["0-1", "253402300799999-0", "1767268800000-9999999999999999999"])
def test_every_id_that_a_stream_gives_is_read(entry_id: str) -> None:
    task = a_task(entry_id=EntryId(entry_id), payload=None)

    assert task == task_of(_stored(pairs(written(None, task))), task_id=task.task_id)


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
    assert (None, None) == (signal_of(f'{{"x":{DEEP}'), event_of(f'{{"x":{DEEP}'))


def test_an_event_at_no_known_moment_is_none() -> None:
    assert event_of(json_text(an_event()).replace('12:00:00Z"', '12:00:00"')) is None


@pytest.mark.parametrize("text", ["", "x", "[1]", f'{{"x":{DEEP}', '{"task_id":"x","state":"completed"}'])
def test_a_text_of_a_stranger_is_no_idempotency_record(text: str) -> None:
    record = IdempotencyRecord(task_id=a_task_id(), state=RecordState.COMPLETED, updated_at=NOW)

    assert read_record(text) is None
    assert read_record(json_text(replace(record, task_id=TaskId("x")))) is None


def test_heartbeats_and_audit_entries_read_back() -> None:
    heartbeat = a_heartbeat(active_tasks=3, task_types=("a:b", "c.d"), visibility_timeout=timedelta(seconds=2.5))
    entry = an_audit_entry(count=0, task_id=a_task_id(), subject="default p5 1-0")

    assert heartbeat == heartbeat_of(heartbeat_fields(heartbeat))
    assert heartbeat_of({}) is None
    assert entry == audit_entry(audit_fields(entry))
    assert "subject" not in audit_fields(an_audit_entry())
