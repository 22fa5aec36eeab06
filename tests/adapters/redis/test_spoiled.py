"""What a stranger wrote among ours: it is passed over or named, and hides nothing of what stands beside it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from dtq.adapters.redis.broker import RedisBroker
from dtq.adapters.redis.client import Request
from dtq.domain.errors import RecordUnreadable
from dtq.domain.status import TaskStatus
from dtq.domain.task import NO_VERSION, QueueName, Task, TaskId, WorkerId
from dtq.ports.answers import Already, Broken
from tests.adapters.redis.schema import Schema
from tests.contract.steps import LIMITS, bare, bring_to, claim_due, create, now, seconds, submit, take
from tests.factories import QUEUE, WORKER, a_heartbeat, an_admission, an_audit_entry

DEEP = "[" * 100_000
ACT = {"actor": "a", "action": "b", "ts": "1", "request_id": "r", "task_id": "", "queue": "", "count": ""}


async def add(schema: Schema, stream: str, fields: Mapping[str, str]) -> None:
    await schema.call("XADD", stream, "*", *(text for pair in fields.items() for text in pair))


@pytest.mark.parametrize(
    "fields",
    [{"x": "y"}, {**ACT, "ts": "9" * 30}, {**ACT, "ts": "soon"}, {**ACT, "count": "x"}, {**ACT, "count": "-1"}],
)
async def test_a_foreign_entry_hides_no_act(schema: Schema, fields: Mapping[str, str]) -> None:
    acts = [an_audit_entry(request_id=f"request-{number}") for number in range(3)]
    for act in acts:
        await schema.harness.backend.audit.record(act)
        await add(schema, schema.keys.audit, fields)

    assert acts[::-1] == list(await schema.harness.backend.audit.recent(limit=9))
    assert acts[:0:-1] == list(await schema.harness.backend.audit.recent(limit=2))


async def test_more_foreign_entries_than_are_asked_for_hide_no_act(schema: Schema) -> None:
    act = an_audit_entry()
    await schema.harness.backend.audit.record(act)
    for _ in range(7):
        await add(schema, schema.keys.audit, {"x": "y"})

    assert [act] == list(await schema.harness.backend.audit.recent(limit=2))


def counted(schema: Schema, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Take note of each trip that the adapter makes from now on."""
    broker = schema.harness.backend.broker
    assert isinstance(broker, RedisBroker)
    client, trips = broker._link.client, list[str]()  # noqa: SLF001 - trips show nowhere else
    send = client.send

    async def send_and_count(request: Request, **named: Any) -> Any:
        trips.append(str(request.command[0]))
        return await send(request, **named)

    monkeypatch.setattr(client, "send", send_and_count)
    return trips


async def test_however_little_is_asked_for_many_foreign_entries_are_passed_in_few_trips(
    schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    act, task = an_audit_entry(), await submit(schema.harness)
    await schema.harness.backend.audit.record(act)
    for number in range(300):
        await add(schema, schema.keys.audit, {"x": "y"})
        await schema.call("ZADD", schema.keys.recent, 10**14 + number, f"nobody-{number}")
    trips = counted(schema, monkeypatch)

    assert [act] == list(await schema.harness.backend.audit.recent(limit=1))
    assert [bare(task)] == list((await schema.harness.backend.broker.recent(queue=None, status=None, limit=1)).tasks)
    assert ["XREVRANGE"] * 2 + ["ZREVRANGE"] * 2 == trips


async def test_a_foreign_dead_letter_is_malformed_and_hides_no_other(schema: Schema) -> None:
    dead = await bring_to(schema.harness, TaskStatus.DEAD_LETTERED)
    await add(schema, schema.keys.dead_letters, {"x": "y"})
    await add(schema, schema.keys.dead_letters, {"task_id": "a:b", "failed_at_ms": "9" * 30})

    letters = await schema.harness.backend.dead_letters.recent(limit=9)

    assert [None, None, dead.task_id] == [letter.task and letter.task.task_id for letter in letters]


async def test_a_dead_letter_whose_record_is_spoiled_is_listed_and_says_so_when_it_is_asked_for(
    schema: Schema,
) -> None:
    dead = await bring_to(schema.harness, TaskStatus.DEAD_LETTERED)
    await schema.call("HSET", schema.keys.task(dead.task_id), "history", f'[{{"x":{DEEP}')

    (letter,) = await schema.harness.backend.dead_letters.recent(limit=9)
    assert dead.task_id == letter.fields["task_id"]
    with pytest.raises(RecordUnreadable):
        await schema.harness.backend.dead_letters.get(dead.task_id)


async def test_odd_members_of_the_recent_tasks_hide_none(schema: Schema) -> None:
    task = await submit(schema.harness)
    for number, member in enumerate(("", "a:b", "x" * 500, "\x00", task.task_id.upper())):
        await schema.call("ZADD", schema.keys.recent, 10**14 + number, member)

    recent = (await schema.harness.backend.broker.recent(queue=None, status=None, limit=2)).tasks

    assert [bare(task)] == list(recent)


@pytest.mark.parametrize("score", ["-inf", "0", "+inf"])
async def test_odd_members_of_the_schedule_keep_nobody_there(schema: Schema, score: str) -> None:
    task = await submit(schema.harness, delay=seconds(1))
    for member in ("", "a:b", "\x00"):
        await schema.call("ZADD", schema.keys.schedule, score, member)
    await schema.harness.advance(seconds(2))

    taken = await claim_due(schema.harness, at=now(schema.harness))
    for one in taken:
        if not isinstance(one, type(task)):
            assert await schema.harness.backend.broker.forget(TaskId(str(one)), version=NO_VERSION)

    assert bare(task) in taken
    left = await schema.harness.backend.broker.next_due()
    assert left == (datetime.max.replace(microsecond=999_000, tzinfo=UTC) if score == "+inf" else None)


async def test_odd_marks_and_odd_queues_disturb_no_sweep_and_no_figures(schema: Schema) -> None:
    task = await submit(schema.harness, delay=seconds(9))
    await submit(schema.harness)
    await schema.call("SADD", schema.keys.cancelled, "", "a:b", task.task_id)
    await schema.call("HSET", schema.keys.queues, "UPPER:*", "1", "", "x", QUEUE, "many", "idle", "9" * 30)
    backend = schema.harness.backend

    assert [QUEUE, "idle"] == list(await backend.queues.names())
    figures = [await backend.queues.stats(QueueName(name)) for name in (QUEUE, "idle")]
    assert [(1, 0), (0, 0)] == [(one.depth, one.retry_scheduled) for one in figures]
    survey = await backend.surveyor.survey(limit=9)
    assert [QUEUE, "idle"] == [one.queue for one in survey.queues]
    assert 3 == await backend.upkeep.drop_marks(limit=100)


async def test_a_queue_whose_count_is_spoiled_can_be_served(schema: Schema) -> None:
    task = await submit(schema.harness)
    await schema.call("HSET", schema.keys.queues, QUEUE, "many")

    await schema.harness.backend.queues.register(QUEUE)
    await schema.harness.lose_groups(QUEUE)

    assert [task.receipt] == [one.receipt for one in await take(schema.harness)]


async def test_odd_workers_hide_none(schema: Schema) -> None:
    backend = schema.harness.backend
    heartbeat = a_heartbeat()
    await backend.workers.announce(heartbeat, expires_in=seconds(30))
    await schema.call("SADD", schema.keys.workers, "", "a b:c")
    for name, spoiled in {"deep": {"task_types": DEEP}, "absurd": {"concurrency": "9" * 99}}.items():
        key = schema.keys.worker(WorkerId(name))
        await schema.call("SADD", schema.keys.workers, name)
        await schema.call("COPY", schema.keys.worker(WORKER), key)
        await schema.call("HSET", key, *next(iter(spoiled.items())))
        await schema.call("PEXPIRE", key, 30_000)

    assert {"", "a b:c", "deep", "absurd", WORKER} == set(await backend.workers.known())
    assert [None, None] == [await backend.workers.get(WorkerId(name)) for name in ("deep", "absurd")]
    assert [heartbeat] == list((await backend.surveyor.survey(limit=9)).heartbeats)


async def test_a_record_under_the_id_of_another_is_unreadable(schema: Schema) -> None:
    first, second = [await submit(schema.harness) for _ in range(2)]
    await schema.call("DEL", schema.keys.task(second.task_id))
    await schema.call("COPY", schema.keys.task(first.task_id), schema.keys.task(second.task_id))

    with pytest.raises(RecordUnreadable, match="of another task"):
        await schema.harness.backend.broker.load(second.task_id)


async def test_a_version_that_is_no_text_is_unreadable(schema: Schema) -> None:
    task = await submit(schema.harness)
    await schema.call("EVAL", "redis.call('HSET', KEYS[1], 'version', '\\255')", 1, schema.keys.task(task.task_id))

    with pytest.raises(RecordUnreadable):
        await schema.harness.backend.broker.load(task.task_id)


async def test_a_submission_into_a_queue_whose_count_is_spoiled_is_kept_and_completed_by_its_repeat(
    schema: Schema,
) -> None:
    await submit(schema.harness)
    await schema.call("HSET", schema.keys.queues, QUEUE, "many")
    admission = an_admission(now=now(schema.harness))

    first = await create(schema.harness, admission)
    (second,) = await schema.harness.backend.broker.create([admission], limits=LIMITS)

    assert isinstance(first, Broken)
    assert isinstance(second, Already)
    assert second.task is not None
    assert admission.change.after.task_id == second.task.task_id


@pytest.mark.parametrize("loss", [("HDEL", "version"), ("HSET", "version", "")], ids=["lost", "emptied"])
async def test_a_record_without_its_version_is_not_taken_for_a_missing_one(
    schema: Schema, loss: tuple[str, ...]
) -> None:
    broker = schema.harness.backend.broker
    waiting, delayed = await submit(schema.harness), await submit(schema.harness, delay=seconds(1))
    for task in (waiting, delayed):
        await schema.call(loss[0], schema.keys.task(task.task_id), *loss[1:])
    await schema.harness.advance(seconds(2))

    fetched = await broker.fetch(QUEUE, worker=WORKER, limit=1, reap_idle=None)

    assert ([], [waiting.receipt]) == (list(fetched.deliveries), [one.receipt for one in fetched.unreadable])
    assert not any(isinstance(one, Task) for one in await claim_due(schema.harness, at=now(schema.harness)))
    assert not await broker.forget(delayed.task_id, version=NO_VERSION)
    for task in (waiting, delayed):
        with pytest.raises(RecordUnreadable, match="version is missing"):
            await broker.load(task.task_id)
    assert 2 == (await broker.recent(queue=None, status=None, limit=9)).unreadable
