"""What a fetch leaves out of a record is what stands there, or the record comes as a whole."""

from collections.abc import Sequence
from typing import Any

import pytest

from dtq.adapters.redis.broker import RedisBroker
from dtq.adapters.redis.client import Request
from dtq.adapters.redis.codec import PAYLOAD, SNAPSHOT
from dtq.adapters.redis.scripts import FETCH
from dtq.domain.entry import FIELDS
from dtq.domain.errors import RecordUnreadable
from dtq.domain.task import Task
from tests.adapters.redis.schema import Schema
from tests.contract.steps import end, promote, run, seconds, stored, submit, take, take_one
from tests.factories import QUEUE, WORKER, a_fault

TOLD = 5
WHOLE = 5
"""How many members an entry has that comes with its whole record."""
BESIDE = len((*FIELDS, PAYLOAD)) + 3
"""How many an entry has beside what is told of its record: its values, its band and its id."""


@pytest.fixture
def lengths(schema: Schema, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Take note of how many fields of a record each entry comes with."""
    broker = schema.harness.backend.broker
    assert isinstance(broker, RedisBroker)
    client, found = broker._link.client, list[int]()  # noqa: SLF001 - what an answer looks like shows nowhere else
    send = client.send

    async def send_and_measure(request: Request, **named: Any) -> Any:
        reply = await send(request, **named)
        if FETCH.digest in request.command:
            found.extend(len(one[3]) if len(one) == WHOLE else len(one) - BESIDE for one in reply[4:])
        return reply

    monkeypatch.setattr(client, "send", send_and_measure)
    return found


@pytest.mark.parametrize(
    "spec", [{}, {"idempotency_key": "key-1"}, {"metadata": '{"a": [1]}'}, {"ttl": seconds(60)}, {"priority": 9}]
)
async def test_the_record_of_a_task_that_waits_for_its_first_start_comes_short(
    schema: Schema, lengths: list[int], spec: dict[str, Any]
) -> None:
    task = await submit(schema.harness, **spec)

    assert task == (await take_one(schema.harness, task)).task
    assert [TOLD] == lengths


async def test_so_does_that_of_a_task_that_was_delayed(schema: Schema, lengths: list[int]) -> None:
    task = await promote(schema.harness, await submit(schema.harness, delay=seconds(60)))

    assert task == (await take_one(schema.harness, task)).task
    assert [TOLD] == lengths


async def test_that_of_a_task_that_ran_comes_whole(schema: Schema, lengths: list[int]) -> None:
    running = await run(schema.harness)
    retried = await promote(schema.harness, await end(schema.harness, running, a_fault()))

    assert retried == (await take_one(schema.harness, retried)).task
    assert [TOLD, len(SNAPSHOT)] == lengths


NOT_YET = {
    *("started_at", "finished_at", "duration_ms", "worker_id", "retry_delay_ms", "cancel_requested"),
    *("result_truncated", "history", "requeued_at", "previous_attempts", "previous_attempts_dropped"),
    *("discarded", "lease", "dlq_entry_id", "error_class", "error_message", "retryable", "ttl_at"),
}
"""What the record of a task that waits for its first start does not have."""
TEXTS: Sequence[str | bytes] = [
    "",
    "0",
    "1",
    "2",
    "9",
    "x",
    "queued",
    "running",
    "{}",
    "1767268800001",
    "1-1",
    f"{7:032x}",
    b"\xff",
    "[" * 9999,
]


async def _fetched(schema: Schema) -> Task | str | None:
    fetched = await schema.harness.backend.broker.fetch(QUEUE, worker=WORKER, limit=9, reap_idle=None)
    return fetched.unreadable[0].reason if fetched.unreadable else fetched.deliveries[0].task


async def _loaded(schema: Schema, task: Task) -> Task | str | None:
    try:
        return await schema.harness.backend.broker.load(task.task_id)
    except RecordUnreadable as error:
        return str(error)


@pytest.mark.parametrize("field", SNAPSHOT)
async def test_whatever_stands_in_a_field_is_fetched_as_it_is_loaded(schema: Schema, field: str) -> None:
    for text in TEXTS:
        task = await submit(schema.harness, idempotency_key=f"key-{text!r:.20}")
        await schema.call("HSET", schema.keys.task(task.task_id), field, text)

        assert await _fetched(schema) == await _loaded(schema, task), text


@pytest.mark.parametrize("field", SNAPSHOT)
async def test_so_is_a_record_that_lacks_one(schema: Schema, field: str) -> None:
    task = await submit(schema.harness, idempotency_key="key-1")
    await schema.call("HDEL", schema.keys.task(task.task_id), field)

    assert await _fetched(schema) == await _loaded(schema, task)


@pytest.mark.parametrize("field", [name for name in SNAPSHOT if name not in NOT_YET])
async def test_so_is_a_record_that_has_one_in_place_of_another(schema: Schema, field: str) -> None:
    task = await submit(schema.harness, idempotency_key="key-1")
    await schema.call("HDEL", schema.keys.task(task.task_id), field)
    await schema.call("HSET", schema.keys.task(task.task_id), "history", "{")

    assert await _fetched(schema) == await _loaded(schema, task)


async def _added(schema: Schema, task: Task, fields: Sequence[str]) -> None:
    """Put another entry in the place of a task's own."""
    stream = schema.keys.stream(task.queue, task.priority)
    await schema.call("XTRIM", stream, "MAXLEN", 0)
    entry_id = await schema.call("XADD", stream, "*", *fields)
    await schema.call("HSET", schema.keys.task(task.task_id), "entry_id", entry_id)


@pytest.mark.parametrize("twice", ["max_attempts", "timeout_ms", "priority", "queue", "task_type", "idempotency_key"])
async def test_an_entry_with_a_field_twice_changes_nothing_of_what_is_stored(schema: Schema, twice: str) -> None:
    task = await submit(schema.harness)
    ((_, fields),) = await schema.entries(schema.keys.stream(task.queue, task.priority))
    await _added(schema, task, [*(text for pair in fields.items() for text in pair), twice, "1"])

    assert await stored(schema.harness, task.task_id) == await _fetched(schema)


async def test_an_entry_that_names_two_tasks_brings_none_of_another(schema: Schema) -> None:
    task, other = await submit(schema.harness), await submit(schema.harness, priority=0)
    await schema.call("XTRIM", schema.keys.stream(other.queue, other.priority), "MAXLEN", 0)
    ((_, fields),) = await schema.entries(schema.keys.stream(task.queue, task.priority))
    await schema.call("HSET", schema.keys.task(other.task_id), "task_id", task.task_id)
    await _added(schema, task, [*(text for pair in fields.items() for text in pair), "task_id", other.task_id])
    entry_id = (await stored(schema.harness, task.task_id)).entry_id
    assert entry_id is not None
    await schema.call("HSET", schema.keys.task(other.task_id), "entry_id", entry_id, "priority", task.priority)

    assert await _fetched(schema) == await _loaded(schema, other)


async def test_an_entry_whose_fields_stand_in_another_order_changes_nothing_of_what_is_stored(schema: Schema) -> None:
    task = await submit(schema.harness)
    ((_, fields),) = await schema.entries(schema.keys.stream(task.queue, task.priority))
    await _added(schema, task, [text for pair in reversed(fields.items()) for text in pair])

    assert await stored(schema.harness, task.task_id) == await _fetched(schema)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("max_attempts", "0"),
        ("priority", "10"),
        ("timeout_ms", "soon"),
        ("task_type", ""),
        ("queue", "A"),
        ("priority", "4"),
    ],
)
async def test_an_entry_that_is_spoiled_as_its_record_is_changes_nothing(schema: Schema, field: str, text: str) -> None:
    task = await submit(schema.harness)
    ((_, fields),) = await schema.entries(schema.keys.stream(task.queue, task.priority))
    await _added(schema, task, [text for pair in (fields | {field: text}).items() for text in pair])
    await schema.call("HSET", schema.keys.task(task.task_id), field, text)

    assert await _fetched(schema) == await _loaded(schema, task)


async def test_of_a_record_without_version_its_entry_is_unreadable_though_its_task_is_marked_as_cancelled(
    schema: Schema,
) -> None:
    task = await submit(schema.harness)
    await schema.call("HSET", schema.keys.task(task.task_id), "version", "")
    await schema.call("SADD", schema.keys.cancelled, task.task_id)

    fetched = await schema.harness.backend.broker.fetch(QUEUE, worker=WORKER, limit=1, reap_idle=None)

    assert ([], [task.receipt]) == (list(fetched.deliveries), [one.receipt for one in fetched.unreadable])


@pytest.mark.parametrize("number", range(len(FIELDS)))
async def test_an_entry_with_a_field_of_another_name_comes_as_it_stands(schema: Schema, number: int) -> None:
    task = await submit(schema.harness)
    ((_, fields),) = await schema.entries(schema.keys.stream(task.queue, task.priority))
    renamed = {"x" if at == number else name: text for at, (name, text) in enumerate(fields.items())}
    await _added(schema, task, [text for pair in renamed.items() for text in pair])

    (delivery,) = await take(schema.harness)

    assert renamed == delivery.fields


async def test_an_entry_that_lies_of_its_task_changes_nothing_of_what_is_stored(schema: Schema) -> None:
    task = await submit(schema.harness)
    ((_, fields),) = await schema.entries(schema.keys.stream(task.queue, task.priority))
    await _added(schema, task, [text for pair in (fields | {"max_attempts": "99"}).items() for text in pair])

    assert await stored(schema.harness, task.task_id) == await _fetched(schema)
