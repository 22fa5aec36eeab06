"""What stands in Redis of a task, field by field, as the contract has it: another program may read it."""

import json
from datetime import timedelta
from typing import Any

import pytest

from dtq.adapters.redis.keys import BANDS
from dtq.adapters.redis.wire import pairs
from dtq.domain.entry import milliseconds
from dtq.domain.status import TaskStatus
from dtq.domain.task import QueueName
from tests.adapters.redis.schema import Schema
from tests.contract.steps import bring_to, cancel, claim, end, now, promote, run, seconds, submit, take
from tests.factories import QUEUE, WORKER, a_fault, a_success

S = TaskStatus
MAIL = QueueName("mail")
DAY_S = 86_400

ENTRY = {
    "task_id",
    "queue",
    "task_type",
    "payload",
    "attempt",
    "max_attempts",
    "priority",
    "timeout_ms",
    "idempotency_key",
}
DEAD_LETTER = ENTRY | {
    "failed_at_ms",
    "attempts_made",
    "last_error",
    "last_error_class",
    "retryable",
    "worker_id",
    "original_queue",
}
ALWAYS = ENTRY | {"status", "metadata", "created_at", "available_at"}
EXECUTION = {
    "started_at",
    "finished_at",
    "duration_ms",
    "worker_id",
    "error_class",
    "error_message",
    "retryable",
    "retry_delay_ms",
}
ADDED = {
    "version",
    "tokens",
    "lease",
    "entry_id",
    "ttl_at",
    "dlq_entry_id",
    "cancel_requested",
    "result_truncated",
    "history",
    "requeued_at",
    "previous_attempts",
    "previous_attempts_dropped",
    "discarded",
}


async def test_each_priority_of_a_queue_is_a_stream_with_the_group_workers(schema: Schema) -> None:
    await schema.harness.backend.queues.register(MAIL)

    groups = [await schema.call("XINFO", "GROUPS", f"{schema.prefix}:stream:mail:p{priority}") for priority in BANDS]

    read = [[(pairs(group)["name"], pairs(group)["last-delivered-id"]) for group in found] for found in groups]
    assert [[("workers", "0-0")]] * 10 == read


async def test_an_entry_has_the_contracts_fields(schema: Schema) -> None:
    task = await submit(schema.harness, queue=MAIL, priority=7, payload='{"a":  [1]}', idempotency_key="key-1")

    ((entry_id, fields),) = await schema.entries(f"{schema.prefix}:stream:mail:p7")

    expected = {
        "task_id": task.task_id,
        "queue": "mail",
        "task_type": task.task_type,
        "payload": '{"a":  [1]}',
        "attempt": "1",
        "max_attempts": "3",
        "priority": "7",
        "timeout_ms": "30000",
        "idempotency_key": "key-1",
    }
    assert (ENTRY, expected, task.entry_id) == (set(fields), fields, entry_id)


async def test_an_entry_without_a_key_has_an_empty_one(schema: Schema) -> None:
    await submit(schema.harness)

    ((_, fields),) = await schema.entries(f"{schema.prefix}:stream:{QUEUE}:p5")

    assert "" == fields["idempotency_key"]


async def test_an_entry_that_was_read_is_pending_until_the_step_that_ends_its_delivery(schema: Schema) -> None:
    task = await submit(schema.harness)
    stream = f"{schema.prefix}:stream:{QUEUE}:p5"

    await take(schema.harness)
    ((entry_id, consumer, *_),) = await schema.call("XPENDING", stream, "workers", "-", "+", 9)
    assert (task.entry_id, WORKER, 1) == (entry_id, consumer, await schema.call("XLEN", stream))

    await cancel(schema.harness, task)
    pending = await schema.call("XPENDING", stream, "workers", "-", "+", 9)
    assert ([], 0) == (pending, await schema.call("XLEN", stream))


async def test_a_dead_letter_has_the_fields_of_an_entry_and_tells_why(schema: Schema) -> None:
    task = await bring_to(schema.harness, S.DEAD_LETTERED, queue=MAIL, payload='{"kept": []}')

    ((entry_id, fields),) = await schema.entries(f"{schema.prefix}:stream:dead-letter")

    assert (DEAD_LETTER, task.dlq_entry_id) == (set(fields), entry_id)
    assert task.finished_at is not None
    expected = {
        "failed_at_ms": str(milliseconds(task.finished_at)),
        "attempts_made": "1",
        "last_error": "no route",
        "last_error_class": "OSError",
        "retryable": "0",
        "worker_id": WORKER,
        "original_queue": "mail",
        "payload": '{"kept": []}',
    }
    assert expected == {name: fields[name] for name in expected}


@pytest.mark.parametrize("status", S)
async def test_a_record_has_the_contracts_fields_and_those_that_are_listed(schema: Schema, status: TaskStatus) -> None:
    task = await bring_to(schema.harness, status, idempotency_key="key-1")

    fields = await schema.record(task)

    assert ALWAYS <= set(fields) <= ALWAYS | EXECUTION | ADDED
    assert (status.value, str(milliseconds(task.created_at))) == (fields["status"], fields["created_at"])
    assert str(milliseconds(task.available_at)) == fields["available_at"]


async def test_a_record_keeps_how_the_latest_attempt_went_and_each_one_in_its_history(schema: Schema) -> None:
    running = await run(schema.harness)
    await schema.harness.advance(seconds(2))
    task = await end(schema.harness, running, a_fault())

    fields = await schema.record(task)

    assert running.started_at is not None
    assert task.finished_at is not None
    started, finished = milliseconds(running.started_at), milliseconds(task.finished_at)
    expected = {
        "started_at": str(started),
        "finished_at": str(finished),
        "duration_ms": str(finished - started),
        "worker_id": WORKER,
        "error_class": "OSError",
        "error_message": "no route",
        "retryable": "1",
        "retry_delay_ms": "1000",
    }
    assert expected == {name: fields[name] for name in EXECUTION}
    (attempt,) = json.loads(fields["history"])
    assert {
        "attempt": 1,
        "started_at": started,
        "finished_at": finished,
        "worker_id": WORKER,
        "error_class": "OSError",
        "error_message": "no route",
        "retryable": True,
        "retry_delay_ms": 1000,
    } == attempt


async def test_a_record_expires_after_its_retention_and_the_delay(schema: Schema) -> None:
    task = await submit(schema.harness)
    delayed = await submit(schema.harness, delay=timedelta(days=2))

    left = [await schema.seconds_left(f"{schema.prefix}:task:{one.task_id}") for one in (task, delayed)]

    assert [pytest.approx(7 * DAY_S, abs=30), pytest.approx(9 * DAY_S, abs=30)] == left


async def test_the_schedule_holds_delayed_tasks_and_retries_by_their_due_time(schema: Schema) -> None:
    delayed = await submit(schema.harness, delay=seconds(60))
    retrying = await bring_to(schema.harness, S.RETRYING)

    found = await schema.call("ZRANGE", f"{schema.prefix}:retry:schedule", 0, -1, "WITHSCORES")

    scores = dict(zip(found[::2], map(float, found[1::2]), strict=True))
    assert {task.task_id: milliseconds(task.available_at) for task in (delayed, retrying)} == scores


async def test_what_the_leader_takes_is_claimed_at_its_time_and_goes_to_the_stream_of_its_priority(
    schema: Schema,
) -> None:
    waiting = await submit(schema.harness, delay=seconds(5), priority=8)
    schedule, claims = f"{schema.prefix}:retry:schedule", f"{schema.prefix}:retry:claimed"

    task = await claim(schema.harness, waiting)
    score = float(await schema.call("ZSCORE", claims, task.task_id))
    assert milliseconds(task.available_at) <= score <= milliseconds(now(schema.harness))
    assert 0 == await schema.call("ZCARD", schedule)

    moment = now(schema.harness) + seconds(60)
    await schema.harness.backend.broker.return_stale(claimed_before=moment, now=moment, limit=9)
    assert milliseconds(moment) == float(await schema.call("ZSCORE", schedule, task.task_id))
    assert 0 == await schema.call("ZCARD", claims)

    await schema.harness.advance(seconds(60))
    await promote(schema.harness, task)
    ((_, fields),) = await schema.entries(f"{schema.prefix}:stream:{QUEUE}:p8")
    assert task.task_id == fields["task_id"]
    assert [0, 0] == [await schema.call("ZCARD", key) for key in (schedule, claims)]


@pytest.mark.parametrize(
    ("status", "state"), [(S.RUNNING, "processing"), (S.SUCCEEDED, "completed"), (S.DEAD_LETTERED, "failed")]
)
async def test_an_idempotency_record_is_json_of_id_state_and_time_and_lives_a_day(
    schema: Schema, status: TaskStatus, state: str
) -> None:
    task = await bring_to(schema.harness, status, idempotency_key="key-1", queue=MAIL)

    key = f"{schema.prefix}:idempotency:mail:key-1"
    record: dict[str, Any] = json.loads(await schema.call("GET", key))

    assert ["task_id", "state", "updated_at"] == list(record)
    assert (task.task_id, state) == (record["task_id"], record["state"])
    assert pytest.approx(DAY_S, abs=30) == await schema.seconds_left(key)


async def test_a_result_has_a_key_of_its_own_for_an_hour(schema: Schema) -> None:
    task = await end(schema.harness, await run(schema.harness), a_success('{"n": 1}'))

    key = f"{schema.prefix}:result:{task.task_id}"

    assert '{"n": 1}' == await schema.call("GET", key)
    assert pytest.approx(3_600, abs=30) == await schema.seconds_left(key)
