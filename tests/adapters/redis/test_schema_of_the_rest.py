"""What stands in Redis beside the tasks, name by name, as the contract has it."""

import json

import pytest

from dtq.adapters.redis.keys import MAX_AUDIT
from dtq.application.loops.lead import TERM
from dtq.domain.entry import milliseconds
from dtq.domain.task import QueueName
from dtq.domain.workers import WorkerStatus
from tests.adapters.redis.schema import Schema
from tests.contract.steps import LEADER, cancel, seconds, submit, take
from tests.factories import OPERATOR, QUEUE, WORKER, a_heartbeat, an_audit_entry, an_event

MAIL = QueueName("mail")
ADDED_TO_WORKER = {"queue", "task_types", "visibility_timeout_ms", "life"}
ADDED_TO_AUDIT = {"queue", "count", "outcome"}


async def test_a_worker_has_a_hash_of_the_contracts_fields_for_three_heartbeats(schema: Schema) -> None:
    heartbeat = a_heartbeat(
        status=WorkerStatus.BUSY, active_tasks=2, tasks_processed=9, tasks_failed=3, tasks_retried=1
    )
    await schema.harness.backend.workers.announce(heartbeat, expires_in=seconds(15))

    fields = await schema.hash(f"{schema.prefix}:worker:{WORKER}")

    expected = {
        "worker_id": WORKER,
        "hostname": heartbeat.hostname,
        "started_at": str(milliseconds(heartbeat.started_at)),
        "last_heartbeat": str(milliseconds(heartbeat.last_heartbeat)),
        "active_tasks": "2",
        "concurrency": "4",
        "tasks_processed": "9",
        "tasks_failed": "3",
        "tasks_retried": "1",
        "status": "busy",
    }
    assert expected == {name: text for name, text in fields.items() if name not in ADDED_TO_WORKER}
    assert ADDED_TO_WORKER <= set(fields)
    assert pytest.approx(15, abs=3) == await schema.seconds_left(f"{schema.prefix}:worker:{WORKER}")


async def test_the_known_workers_are_a_set_of_ids(schema: Schema) -> None:
    await schema.harness.backend.workers.announce(a_heartbeat(), expires_in=seconds(15))

    assert [WORKER] == await schema.call("SMEMBERS", f"{schema.prefix}:workers")


async def test_a_pause_is_a_one_that_goes_with_it(schema: Schema) -> None:
    queues, key = schema.harness.backend.queues, f"{schema.prefix}:queue:mail:paused"

    await queues.pause(MAIL, audit=an_audit_entry(), event=an_event())
    assert "1" == await schema.call("GET", key)

    await queues.resume(MAIL, audit=an_audit_entry(), event=an_event())
    assert 0 == await schema.call("EXISTS", key)


@pytest.mark.parametrize("text", ["0", "", "no"])
async def test_whatever_stands_there_pauses(schema: Schema, text: str) -> None:
    await submit(schema.harness)
    await schema.call("SET", f"{schema.prefix}:queue:{QUEUE}:paused", text)

    assert (await schema.harness.backend.queues.stats(QUEUE)).paused
    fetched = await schema.harness.backend.broker.fetch(QUEUE, worker=WORKER, limit=1, reap_idle=None)
    assert (True, []) == (fetched.paused, [*fetched.deliveries])

    await schema.harness.backend.queues.resume(QUEUE, audit=an_audit_entry(), event=an_event())
    assert 1 == len(await take(schema.harness))


async def test_a_task_that_is_cancelled_while_queued_is_in_the_set_of_those(schema: Schema) -> None:
    queued = await cancel(schema.harness, await submit(schema.harness))
    await cancel(schema.harness, await submit(schema.harness, delay=seconds(60)))

    key = f"{schema.prefix}:cancelled"

    assert [queued.task_id] == await schema.call("SMEMBERS", key)
    assert pytest.approx(604_800, abs=30) == await schema.seconds_left(key)


async def test_recent_tasks_stand_by_their_creation(schema: Schema) -> None:
    task = await submit(schema.harness)

    score = await schema.call("ZSCORE", f"{schema.prefix}:tasks:recent", task.task_id)

    assert milliseconds(task.created_at) == float(score)


async def test_an_audit_entry_has_the_contracts_fields(schema: Schema) -> None:
    task = await cancel(schema.harness, await submit(schema.harness))

    ((_, fields),) = await schema.entries(f"{schema.prefix}:stream:audit")

    assert {"actor", "action", "task_id", "ts", "request_id"} | ADDED_TO_AUDIT == set(fields)
    assert (OPERATOR.name, "task.cancel", task.task_id, OPERATOR.request_id) == tuple(
        fields[name] for name in ("actor", "action", "task_id", "request_id")
    )


async def test_the_audit_stream_is_trimmed_to_about_ten_thousand(schema: Schema) -> None:
    key = f"{schema.prefix}:stream:audit"
    fill = "for i = 1, ARGV[1] do redis.call('XADD', KEYS[1], '*', 'action', 'old') end"
    await schema.call("EVAL", fill, 1, key, MAX_AUDIT + 500)

    await schema.harness.backend.audit.record(an_audit_entry())

    assert 10_000 <= await schema.call("XLEN", key) <= 10_100


async def test_the_leaders_lock_holds_its_token_for_ten_seconds(schema: Schema) -> None:
    await schema.harness.backend.leadership.acquire(LEADER, term=TERM)

    key = f"{schema.prefix}:lock:scheduler"

    assert LEADER == await schema.call("GET", key)
    assert pytest.approx(10, abs=2) == await schema.seconds_left(key)


async def test_the_registry_counts_what_is_scheduled_for_each_queue(schema: Schema) -> None:
    await submit(schema.harness, delay=seconds(60), queue=MAIL)
    await submit(schema.harness)

    assert {"mail": "1", QUEUE: "0"} == await schema.hash(f"{schema.prefix}:queues")


async def test_an_event_is_published_with_the_contracts_members(schema: Schema) -> None:
    async with schema.client.subscribe(f"{schema.prefix}:events") as texts:
        task = await submit(schema.harness)
        event = json.loads(await anext(texts))

    members = ["event_id", "ts", "type", "task_id", "queue", "task_type", "attempt", "worker_id", "metadata"]
    assert members == list(event)
    assert ("TASK_QUEUED", task.task_id, 0) == (event["type"], event["task_id"], event["attempt"])
