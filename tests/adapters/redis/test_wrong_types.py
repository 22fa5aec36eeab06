"""Keys of another type, as a stranger leaves them among ours: each spoils what it stands for, and nothing else."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from dtq.adapters.redis.broker import RedisBroker
from dtq.adapters.redis.envelope import MAX_ACTS, Envelope
from dtq.domain.errors import BrokerRefused, RecordUnreadable, StepStopped
from dtq.domain.status import TaskStatus
from dtq.domain.task import QueueName, Task, TaskId
from dtq.ports.answers import Broken
from tests.adapters.redis.schema import Schema
from tests.contract.steps import (
    LEADER,
    PEER,
    VISIBILITY,
    all_strays,
    bring_to,
    claim_due,
    create,
    held_lease,
    now,
    run,
    seconds,
    submit,
    take,
)
from tests.factories import QUEUE, WORKER, a_heartbeat, an_admission, an_audit_entry, an_event


async def replace_record(schema: Schema, task: Task) -> None:
    key = schema.keys.task(task.task_id)
    await schema.call("DEL", key)
    await schema.call("SET", key, "a stranger's")


async def test_a_record_of_another_type_makes_only_its_own_entry_unreadable(schema: Schema) -> None:
    first, bad, last = [await submit(schema.harness, priority=4) for _ in range(3)]
    low = await submit(schema.harness, priority=1)
    await replace_record(schema, bad)

    fetched = await schema.harness.backend.broker.fetch(QUEUE, worker=WORKER, limit=9, reap_idle=VISIBILITY)

    assert [one.receipt for one in (first, last, low)] == [one.receipt for one in fetched.deliveries]
    assert [bad.receipt] == [one.receipt for one in fetched.unreadable]
    assert "WRONGTYPE" in fetched.unreadable[0].reason
    assert [] == list(fetched.faults)


async def test_a_record_of_another_type_is_refused_by_the_name_of_its_key(schema: Schema) -> None:
    task = await submit(schema.harness)
    await replace_record(schema, task)

    with pytest.raises(RecordUnreadable, match=f"key {schema.keys.task(task.task_id)} is of another type"):
        await schema.harness.backend.broker.load(task.task_id)


async def test_each_key_of_another_type_is_named_where_it_is_asked_for(schema: Schema) -> None:
    keys, backend = schema.keys, schema.harness.backend
    for key in (keys.audit, keys.dead_letters, keys.queues, keys.recent, keys.stream(QUEUE, 7)):
        await schema.call("DEL", key)
        await schema.call("SET", key, "a stranger's")
    reads: dict[str, Callable[[], Awaitable[object]]] = {
        keys.audit: lambda: backend.audit.recent(limit=1),
        keys.dead_letters: backend.dead_letters.count,
        keys.queues: backend.queues.names,
        keys.recent: lambda: backend.broker.recent(queue=None, status=None, limit=1),
    }

    for key, read in reads.items():
        with pytest.raises(RecordUnreadable, match=f"key {key} is of another type"):
            await read()
    await schema.call("DEL", keys.queues)
    with pytest.raises(RecordUnreadable, match=f"key {keys.stream(QUEUE, 7)} is of another type"):
        await backend.queues.stats(QUEUE)


async def test_a_record_of_another_type_costs_its_neighbors_no_lease(schema: Schema) -> None:
    good, bad = [await run(schema.harness) for _ in range(2)]
    await replace_record(schema, bad)
    await schema.harness.advance(VISIBILITY)

    reports = await schema.harness.backend.broker.extend([held_lease(bad), held_lease(good)], worker=WORKER)

    assert [False, True] == [report.kept for report in reports]
    reaped = await take(schema.harness, worker=PEER, reap_idle=VISIBILITY)
    assert [] == list(reaped)


async def test_a_record_of_another_type_keeps_nobody_in_the_schedule(schema: Schema) -> None:
    tasks = [await submit(schema.harness, delay=seconds(number)) for number in (1, 2, 3)]
    await replace_record(schema, tasks[1])
    await schema.harness.advance(timedelta(seconds=5))

    taken = await claim_due(schema.harness, at=now(schema.harness))

    ids = [one.task_id if isinstance(one, Task) else one for one in taken]
    assert [task.task_id for task in tasks] == ids
    assert tasks[1].task_id == taken[1]


async def test_a_record_of_another_type_hides_no_stray_and_no_recent_task(schema: Schema) -> None:
    stray, bad = [await submit(schema.harness) for _ in range(2)]
    await schema.harness.orphan(stray.task_id)
    await replace_record(schema, bad)
    await schema.call("SET", schema.keys.task(TaskId("lock:1")), "a user's own")

    assert [stray.task_id] == [task.task_id for task in await all_strays(schema.harness)]
    recent = await schema.harness.backend.broker.recent(queue=QUEUE, status=None, limit=9)
    assert 1 == recent.unreadable
    assert [stray.task_id] == [task.task_id for task in recent.tasks]


async def test_the_tasks_of_a_priority_that_cannot_be_read_are_no_strays(schema: Schema) -> None:
    await submit(schema.harness, priority=4)
    await schema.harness.spoil(QUEUE, priority=4)

    assert [] == await all_strays(schema.harness)


async def test_a_priority_that_cannot_be_read_hides_no_stray_of_another(schema: Schema) -> None:
    first, spoiled, last = [await submit(schema.harness, priority=priority) for priority in (9, 4, 1)]
    placed = await submit(schema.harness, priority=9)
    scheduled = await submit(schema.harness, delay=seconds(60))
    for task in (first, last, scheduled):
        await schema.harness.orphan(task.task_id)
    await schema.harness.spoil(QUEUE, priority=4)

    strays = await all_strays(schema.harness)

    assert {first.task_id, last.task_id, scheduled.task_id} == {task.task_id for task in strays}
    assert not {placed.task_id, spoiled.task_id} & {task.task_id for task in strays}


async def test_a_priority_that_cannot_be_read_hides_nothing_that_is_owned_of_another(schema: Schema) -> None:
    for priority in (9, 4, 1):
        await submit(schema.harness, priority=priority)
    high, _, low = await take(schema.harness)
    await schema.harness.spoil(QUEUE, priority=4)

    assert [high.receipt, low.receipt] == list(await schema.harness.backend.broker.owned(QUEUE, worker=WORKER))


async def test_a_priority_that_cannot_be_read_keeps_no_mark(schema: Schema) -> None:
    other = QueueName("other")
    waiting = await submit(schema.harness, queue=other, priority=1)
    await submit(schema.harness, priority=4)
    await schema.call("SADD", schema.keys.cancelled, waiting.task_id, *(f"{number:032x}" for number in range(3)))
    await schema.harness.spoil(QUEUE, priority=4)

    assert 3 == await schema.harness.backend.upkeep.drop_marks(limit=100)
    assert [waiting.task_id] == await schema.call("SMEMBERS", schema.keys.cancelled)


async def test_a_priority_that_cannot_be_read_keeps_no_record_of_another_from_being_renewed(schema: Schema) -> None:
    for priority in (9, 4, 1):
        await submit(schema.harness, priority=priority)
    await schema.harness.spoil(QUEUE, priority=4)
    await schema.harness.advance(seconds(1))
    since = now(schema.harness)

    answers: list[int] = []
    cursor = ""
    while not answers or cursor:
        cursor, renewed = await schema.harness.backend.upkeep.keep_alive(
            QUEUE, cursor=cursor, waiting_since=since, limit=1
        )
        answers.append(renewed)

    assert 2 == sum(answers)


async def test_a_priority_that_cannot_be_read_hides_no_waiting_task_of_another(schema: Schema) -> None:
    high, _, low = [await submit(schema.harness, priority=priority) for priority in (9, 4, 1)]
    await schema.harness.spoil(QUEUE, priority=4)

    found = await schema.harness.backend.queues.undelivered(QUEUE, limit=10)

    assert [high.receipt, low.receipt] == [one.receipt for one in found if isinstance(one, Task)]


async def test_a_record_of_another_type_hides_no_waiting_task(schema: Schema) -> None:
    first, bad, last = [await submit(schema.harness, priority=4) for _ in range(3)]
    await replace_record(schema, bad)

    found = await schema.harness.backend.queues.undelivered(QUEUE, limit=10)

    assert [first.task_id, bad.receipt, last.task_id] == [
        one.task_id if isinstance(one, Task) else one for one in found
    ]


async def test_a_sign_of_life_of_another_type_is_none(schema: Schema) -> None:
    await schema.call("SADD", schema.keys.workers, WORKER)
    await schema.call("SET", schema.keys.worker(WORKER), "a stranger's", "PX", 60_000)

    assert await schema.harness.backend.workers.get(WORKER) is None


async def test_where_a_sign_of_life_is_of_another_type_nobody_can_tell_whose_the_id_is(schema: Schema) -> None:
    workers = schema.harness.backend.workers
    key = schema.keys.worker(WORKER)
    await schema.call("SET", key, "a stranger's")

    with pytest.raises(BrokerRefused, match=f"nothing was done: .*{key}.* of another type"):
        await workers.announce(a_heartbeat(), expires_in=seconds(15))
    with pytest.raises(BrokerRefused, match="nothing was done"):
        await workers.retire(a_heartbeat(), event=an_event())

    assert ("a stranger's", []) == (await schema.call("GET", key), list(await workers.known()))
    await schema.call("DEL", key)
    assert await workers.announce(a_heartbeat(), expires_in=seconds(15))


async def test_where_the_lock_is_of_another_type_nobody_can_tell_who_leads(schema: Schema) -> None:
    leadership = schema.harness.backend.leadership
    await schema.call("SADD", schema.keys.lock, "a stranger's")

    with pytest.raises(BrokerRefused, match=schema.keys.lock):
        await leadership.acquire(LEADER, term=seconds(15))
    with pytest.raises(BrokerRefused, match=schema.keys.lock):
        await leadership.resign(LEADER)


async def test_a_stream_of_another_type_refuses_the_figures_of_its_queue_alone(schema: Schema) -> None:
    other = QueueName("other")
    await submit(schema.harness)
    await submit(schema.harness, queue=other)
    await schema.harness.spoil(other, priority=4)

    assert 1 == (await schema.harness.backend.queues.stats(QUEUE)).depth
    with pytest.raises(BrokerRefused):
        await schema.harness.backend.queues.stats(other)


async def test_an_act_that_stops_half_way_does_not_say_that_nothing_was_done(schema: Schema) -> None:
    queues = schema.harness.backend.queues
    await schema.call("SET", schema.keys.audit, "a stranger's")

    with pytest.raises(StepStopped, match="WRONGTYPE"):
        await queues.pause(QUEUE, audit=an_audit_entry(), event=an_event())

    assert (await queues.stats(QUEUE)).paused


async def test_a_purge_that_stops_half_way_does_not_say_that_nothing_was_done(schema: Schema) -> None:
    letters = schema.harness.backend.dead_letters
    await bring_to(schema.harness, TaskStatus.DEAD_LETTERED)
    await schema.call("SET", schema.keys.audit, "a stranger's")

    with pytest.raises(StepStopped, match="WRONGTYPE"):
        await letters.purge(audit=an_audit_entry())

    assert 0 == await letters.count()


async def test_an_act_that_stops_keeps_none_of_the_others_waiting(schema: Schema) -> None:
    broker = schema.harness.backend.broker
    assert isinstance(broker, RedisBroker)
    names = [f"{schema.prefix}:scratch:{number}" for number in range(MAX_ACTS + 2)]
    await schema.call("SET", names[0], "a stranger's")

    with pytest.raises(StepStopped):
        await broker._link.act_on(names, _add_a_member)  # noqa: SLF001 - the port sends so many acts at once nowhere

    assert len(names) - 1 == sum([await schema.call("SCARD", name) for name in names[1:]])


def _add_a_member(envelope: Envelope, name: str) -> None:
    envelope.add(steps=[(("SADD", envelope.key(name), "one"),)])


async def test_a_queue_whose_depth_cannot_be_told_admits_nothing(schema: Schema) -> None:
    admission = an_admission(now=now(schema.harness), priority=5)
    await schema.harness.spoil(QUEUE, priority=4)

    answer = await create(schema.harness, admission)

    assert isinstance(answer, Broken)
    assert await schema.harness.backend.broker.load(admission.change.after.task_id) is None
