from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from dtq.domain.entry import (
    FIELDS,
    dead_letter_fields,
    entry_fields,
    malformed_fields,
    milliseconds,
    moment,
    rebuild,
    revive,
    usable_task_id,
)
from dtq.domain.status import TaskStatus
from dtq.domain.task import NO_VERSION, AttemptRecord, EntryId, QueueName, Receipt, Task, WorkerId
from tests.domain.factories import BEGIN, DEAD_ENTRY, ENTRY, FAILURE, NOW, TASK_ID, WORKER, a_task

RECEIPT = Receipt(QueueName("default"), 5, ENTRY)
ENTRY_TIME = moment(1_796_000_000_000)
LETTER_TIME = moment(1_796_000_000_001)
LAST_MS = 253_402_300_799_999


def an_entry(**fields: str) -> dict[str, str]:
    return {**entry_fields(a_task()), "payload": '{"hello":"world"}', **fields}


def a_letter(**fields: str) -> dict[str, str]:
    task = replace(a_task(TaskStatus.DEAD_LETTERED), finished_at=NOW)
    return {**dead_letter_fields(task), "payload": '{"hello":"world"}', **fields}


def revived(**fields: str) -> Task | None:
    return revive(a_letter(**fields), dlq_entry_id=DEAD_ENTRY)


def test_an_entry_has_the_contracts_fields_but_the_payload() -> None:
    task = replace(a_task(), attempt=1, idempotency_key="key")

    expected = {
        "task_id": TASK_ID,
        "queue": "default",
        "task_type": "echo_task",
        "attempt": "2",
        "max_attempts": "3",
        "priority": "5",
        "timeout_ms": "30000",
        "idempotency_key": "key",
    }
    assert (expected, FIELDS) == (entry_fields(task), tuple(entry_fields(task)))


def test_an_entry_without_a_key_says_so_by_an_empty_one() -> None:
    assert "" == entry_fields(a_task())["idempotency_key"]


def test_a_dead_letter_has_the_contracts_fields_but_the_payload() -> None:
    task = replace(a_task(TaskStatus.DEAD_LETTERED), attempt=2, finished_at=NOW)

    expected = {
        **entry_fields(task),
        "attempt": "2",
        "failed_at_ms": str(milliseconds(NOW)),
        "attempts_made": "2",
        "last_error": "no",
        "last_error_class": "ValueError",
        "retryable": "1",
        "worker_id": WORKER,
        "original_queue": "default",
    }
    assert expected == dead_letter_fields(task)


def test_a_dead_letter_of_an_unknown_worker_says_so() -> None:
    task = replace(a_task(TaskStatus.DEAD_LETTERED), worker_id=None, failure=replace(FAILURE, retryable=False))

    fields = dead_letter_fields(task)

    assert ("", "0") == (fields["worker_id"], fields["retryable"])


@pytest.mark.parametrize("missing", ["failure", "finished_at"])
def test_a_task_that_has_not_failed_cannot_be_buried(missing: str) -> None:
    task = replace(a_task(TaskStatus.DEAD_LETTERED), **{missing: None})

    with pytest.raises(ValueError, match="buried without a failure"):
        dead_letter_fields(task)


def test_a_malformed_letter_has_the_same_fields_as_any_other() -> None:
    fields = malformed_fields({"task_id": "a\nb", "task_type": "c\x00d"}, receipt=RECEIPT, at=NOW)

    expected = {
        **dict.fromkeys(dead_letter_fields(a_task(TaskStatus.DEAD_LETTERED)), "0"),
        "task_id": "a b",
        "task_type": "c d",
        "queue": "default",
        "original_queue": "default",
        "priority": "5",
        "failed_at_ms": str(milliseconds(NOW)),
        "last_error": "malformed_entry",
        "last_error_class": "malformed_entry",
        "idempotency_key": "",
        "worker_id": "",
    }
    assert expected == fields


def test_a_malformed_letter_of_an_empty_entry_names_no_task() -> None:
    fields = malformed_fields({}, receipt=RECEIPT, at=NOW)

    assert ("", "") == (fields["task_id"], fields["task_type"])


@pytest.mark.parametrize(
    "text", ["", "x" * 32, TASK_ID.upper(), TASK_ID + "0", TASK_ID[:-1], TASK_ID + "\n", "\u0660" * 32]
)
def test_an_entry_names_a_task_by_thirty_two_hex_digits_or_not_at_all(text: str) -> None:
    assert (None, None, TASK_ID) == (
        usable_task_id({"task_id": text}),
        usable_task_id({}),
        usable_task_id({"task_id": TASK_ID}),
    )


def test_a_task_is_rebuilt_from_its_entry() -> None:
    expected = replace(a_task(), created_at=ENTRY_TIME, available_at=ENTRY_TIME, version=NO_VERSION)

    assert expected == rebuild(an_entry(), receipt=RECEIPT)


@pytest.mark.parametrize(
    ("attempt", "highest", "made"), [("1", "1", 0), ("3", "3", 2), ("9", "3", 2), ("100", "100", 99)]
)
def test_a_rebuilt_task_has_made_the_attempts_before_this_one(attempt: str, highest: str, made: int) -> None:
    task = rebuild(an_entry(attempt=attempt, max_attempts=highest), receipt=RECEIPT)

    assert task is not None
    assert made == task.attempt


def test_a_rebuilt_task_keeps_its_key() -> None:
    task = rebuild(an_entry(idempotency_key="key"), receipt=RECEIPT)

    assert task is not None
    assert "key" == task.idempotency_key


def test_the_stream_decides_about_the_priority() -> None:
    task = rebuild(an_entry(priority="9"), receipt=RECEIPT)

    assert task is not None
    assert 5 == task.priority


@pytest.mark.parametrize("payload", ["", "[]", "{", "\ud800"])
def test_a_payload_is_looked_at_only_when_it_is_run(payload: str) -> None:
    task = rebuild(an_entry(payload=payload), receipt=RECEIPT)

    assert task is not None
    assert payload == task.payload


@pytest.mark.parametrize("name", sorted(an_entry().keys() - {"idempotency_key", "priority"}))
def test_an_entry_without_a_field_is_malformed(name: str) -> None:
    fields = an_entry()
    del fields[name]

    assert rebuild(fields, receipt=RECEIPT) is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("task_id", "x"),
        ("queue", "mail"),
        ("task_type", "no such\ntype"),
        ("task_type", ""),
        ("attempt", "0"),
        ("attempt", "-1"),
        ("attempt", "101"),
        ("attempt", "1.0"),
        ("attempt", "1e1"),
        ("attempt", " 1"),
        ("attempt", "1_0"),
        ("attempt", "\u0661"),
        ("attempt", "9" * 5000),
        ("max_attempts", "0"),
        ("max_attempts", "101"),
        ("timeout_ms", "0"),
        ("timeout_ms", "3600001"),
        ("idempotency_key", "a b"),
        ("idempotency_key", "k" * 201),
        ("idempotency_key", "k\n"),
    ],
)
def test_an_entry_with_a_field_out_of_bounds_is_malformed(name: str, text: str) -> None:
    assert rebuild(an_entry(**{name: text}), receipt=RECEIPT) is None


@pytest.mark.parametrize(("number", "known"), [(0, True), (LAST_MS, True), (LAST_MS + 1, False), (2**64 - 1, False)])
def test_an_entry_whose_id_is_no_time_is_malformed(*, number: int, known: bool) -> None:
    receipt = Receipt(QueueName("default"), 5, EntryId(f"{number}-0"))

    assert known == (rebuild(an_entry(), receipt=receipt) is not None)


def test_a_dead_task_is_revived_from_its_letter() -> None:
    record = AttemptRecord(attempt=1, started_at=None, finished_at=NOW, worker_id=WORKER, failure=FAILURE)

    expected = replace(
        a_task(),
        status=TaskStatus.DEAD_LETTERED,
        created_at=LETTER_TIME,
        available_at=LETTER_TIME,
        attempt=1,
        finished_at=NOW,
        worker_id=WORKER,
        failure=FAILURE,
        history=(record,),
        entry_id=None,
        dlq_entry_id=DEAD_ENTRY,
        version=NO_VERSION,
    )
    assert expected == revived()


def test_a_letter_that_names_no_worker_revives_without() -> None:
    task = revived(worker_id="")

    assert task is not None
    assert task.worker_id is None


def test_a_revived_tasks_texts_are_cleaned_and_cut() -> None:
    task = revived(last_error="a\n" * 400, last_error_class="b\n" * 400, worker_id="c\n", retryable="yes")

    assert task is not None
    assert replace(FAILURE, error_message="a " * 250, error_class="b " * 50, retryable=False) == task.failure
    assert WorkerId("c ") == task.worker_id


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("original_queue", ""),
        ("original_queue", "mail"),
        ("priority", "10"),
        ("priority", "-1"),
        ("priority", ""),
        ("failed_at_ms", ""),
        ("failed_at_ms", "x"),
        ("failed_at_ms", str(LAST_MS + 1)),
        ("attempt", "0"),
        ("task_id", ""),
    ],
)
def test_a_letter_with_a_field_out_of_bounds_is_malformed(name: str, text: str) -> None:
    assert revived(**{name: text}) is None


@pytest.mark.parametrize("queue", ["a:b", "A", "a\n", "", "x" * 65])
def test_a_letter_of_an_impossible_queue_is_malformed(queue: str) -> None:
    assert revived(queue=queue, original_queue=queue) is None


@pytest.mark.parametrize("timeout", ["1", "3600000"])
@pytest.mark.parametrize("priority", ["0", "9"])
@pytest.mark.parametrize("failed_at", ["0", str(LAST_MS)])
def test_a_letter_at_its_bounds_is_revived(timeout: str, priority: str, failed_at: str) -> None:
    task = revived(timeout_ms=timeout, priority=priority, failed_at_ms=failed_at)

    assert task is not None
    assert (timedelta(milliseconds=int(timeout)), int(priority)) == (task.timeout, task.priority)
    assert moment(int(failed_at)) == task.finished_at


def test_a_malformed_letter_is_not_revived() -> None:
    fields = {**malformed_fields(an_entry(), receipt=RECEIPT, at=NOW), "payload": "{}"}

    assert revive(fields, dlq_entry_id=DEAD_ENTRY) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (1_796_000_000_001, datetime(2026, 11, 30, 0, 53, 20, 1000, tzinfo=UTC)),
        (LAST_MS, datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)),
    ],
)
def test_a_moment_is_milliseconds_since_the_epoch(value: int, expected: datetime) -> None:
    assert (expected, value) == (moment(value), milliseconds(expected))


def test_less_than_a_millisecond_is_cut_off() -> None:
    assert milliseconds(BEGIN) == milliseconds(BEGIN + timedelta(microseconds=999))
