"""What only a Redis server can be spoiled in: names, types, lifetimes, groups, counts, lists of workers and queues."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dtq.adapters.redis.keys import Keyspace
from dtq.adapters.redis.link import Link
from dtq.adapters.redis.names import name_of
from dtq.adapters.redis.tally import EXACT
from dtq.application.reaping import SURELY_HANDED_BACK
from dtq.domain.examination import examine
from dtq.domain.facts import CountFact, Denied, NameFact, Role
from dtq.domain.findings import Bearings, Finding, Kind
from dtq.domain.retention import LEAD_TERM
from dtq.domain.status import TaskStatus
from dtq.domain.task import QueueName, TaskId, Version, WorkerId
from tests.adapters.redis.schema import Schema
from tests.contract.examining import told
from tests.contract.steps import bring_to, now, seconds, submit
from tests.factories import QUEUE, WORKER, a_heartbeat

DAY = timedelta(days=1)


async def found(schema: Schema) -> list[Finding]:
    """What seems wrong at the first look, and is so at the second."""
    bearings = Bearings(
        now=now(schema.harness),
        abandoned_after=seconds(60),
        handed_back=SURELY_HANDED_BACK,
        letters_kept_since=datetime(1970, 1, 1, tzinfo=UTC),
    )
    facts = [one for one in await told(schema.harness) if not isinstance(one, Denied)]
    suspects = [one for fact in facts for one in examine(fact, bearings=bearings)]
    again = await schema.harness.backend.examiner.again([one.fact for one in suspects if one.fact is not None])
    sure = [one for fact in again if fact is not None for one in examine(fact, bearings=bearings)]
    return [one for one in sure if not one.ripe_in]


async def only(schema: Schema) -> Finding:
    (finding,) = await found(schema)
    return finding


@pytest.mark.parametrize(
    ("make", "role"),
    [
        (lambda keys: keys.task(TaskId("f" * 32)), Role.TASK),
        (lambda keys: keys.result(TaskId("f" * 32)), Role.RESULT),
        (lambda keys: keys.idempotency(QUEUE, "a:b"), Role.KEY),
        (lambda keys: keys.worker(WORKER), Role.HEARTBEAT),
        (lambda keys: keys.lock, Role.LOCK),
        (lambda keys: keys.cancelled, Role.MARKS),
        (lambda keys: keys.stream(QUEUE, 9), Role.BOUNDED),
        (lambda keys: keys.paused(QUEUE), Role.BOUNDED),
        (lambda keys: keys.queues, Role.BOUNDED),
        (lambda keys: keys.workers, Role.BOUNDED),
        (lambda keys: keys.recent, Role.BOUNDED),
        (lambda keys: keys.schedule, Role.BOUNDED),
        (lambda keys: keys.claimed, Role.BOUNDED),
        (lambda keys: keys.dead_letters, Role.BOUNDED),
        (lambda keys: keys.audit, Role.BOUNDED),
        (lambda keys: f"{keys.prefix}:op:x", Role.HANDLERS),
        (lambda keys: f"{keys.prefix}:task:short", Role.FOREIGN),
    ],
)
def test_every_name_that_is_made_is_known_again(make: Any, role: Role) -> None:
    keys = Keyspace("dtq")
    name = make(keys)

    assert role is name_of(keys, name).role
    assert (role is Role.BOUNDED) == (keys.bound_of(name) is not None)


async def test_a_record_without_a_lifetime_gets_that_of_its_task(schema: Schema) -> None:
    task = await submit(schema.harness, idempotency_key="k", delay=seconds(30 * 86_400))
    names = (schema.keys.task(task.task_id), schema.keys.idempotency(QUEUE, "k"))
    for name in names:
        await schema.call("PERSIST", name)

    facts = {one.subject: one.fact for one in await found(schema) if one.kind is Kind.ETERNAL}

    assert set(names) == set(facts)
    records = [fact.record.task for fact in facts.values() if isinstance(fact, NameFact)]
    assert [task.version] * 2 == [one.version for one in records if one is not None]


async def test_a_result_names_its_task(schema: Schema) -> None:
    await schema.call("SET", schema.keys.result(TaskId("f" * 32)), "{}")

    finding = await only(schema)

    assert (Kind.ETERNAL, "f" * 32) == (finding.kind, finding.task_id)


async def test_only_what_has_no_lifetime_gets_one(schema: Schema) -> None:
    task = await submit(schema.harness)
    name = schema.keys.task(task.task_id)

    assert not await schema.harness.backend.examiner.limit(name, lifetime=seconds(5))
    await schema.call("PERSIST", name)
    assert await schema.harness.backend.examiner.limit(name, lifetime=DAY)
    assert await schema.seconds_left(name) > DAY.total_seconds() - 60


async def test_a_key_of_another_type_is_told_of_once(schema: Schema) -> None:
    await schema.call("SET", schema.keys.task(TaskId("f" * 32)), "text", "EX", 60)

    finding = await only(schema)

    assert (Kind.WRONG_TYPE, "it is a string") == (finding.kind, finding.detail)


async def test_a_stream_of_another_type_hides_no_other(schema: Schema) -> None:
    task = await submit(schema.harness, priority=4)
    await schema.harness.orphan(task.task_id)
    await schema.call("SET", schema.keys.stream(QUEUE, 5), "text")

    assert {Kind.WRONG_TYPE, Kind.HOMELESS} == {one.kind for one in await found(schema)}
    assert ["entries of default, priority 5"] == [
        one.what for one in await told(schema.harness) if isinstance(one, Denied)
    ]


async def test_an_unknown_name_is_told_of(schema: Schema) -> None:
    await schema.call("SET", f"{schema.prefix}:something", "text", "EX", 60)

    assert Kind.FOREIGN is (await only(schema)).kind


@pytest.mark.parametrize("name", ["stream:-bad:p1", "queue:-bad:paused", f"stream:{'x' * 65}:p1"])
async def test_a_key_of_a_queue_that_can_not_be_is_unknown(schema: Schema, name: str) -> None:
    command = (
        ("XADD", f"{schema.prefix}:{name}", "*", "a", "b")
        if "stream" in name
        else ("SET", f"{schema.prefix}:{name}", "1")
    )
    await schema.call(*command)

    assert (Kind.FOREIGN, f"{schema.prefix}:{name}"[:100]) == ((await only(schema)).kind, (await only(schema)).subject)


async def test_a_lock_without_a_lifetime_is_told_of(schema: Schema) -> None:
    await schema.call("SET", schema.keys.lock, "token")

    assert Kind.LOCK is (await only(schema)).kind


async def test_a_lock_that_outlives_its_term_is_told_of_and_cut(schema: Schema) -> None:
    lock, examiner = schema.keys.lock, schema.harness.backend.examiner
    await schema.call("SET", lock, "stranger", "EX", 31_536_000)

    finding = await only(schema)
    assert (Kind.LOCK, lock) == (finding.kind, finding.subject)
    assert "it lives for another 3153" in finding.detail

    assert await examiner.shorten(lock, lifetime=LEAD_TERM)
    assert await schema.seconds_left(lock) <= LEAD_TERM.total_seconds()
    assert [] == await found(schema)


async def test_nothing_lives_longer_for_being_cut(schema: Schema) -> None:
    lock, examiner = schema.keys.lock, schema.harness.backend.examiner
    await schema.call("SET", lock, "leader", "PX", 5_000)

    assert not await examiner.shorten(lock, lifetime=LEAD_TERM)
    assert not await examiner.shorten(schema.keys.task(TaskId("f" * 32)), lifetime=LEAD_TERM)
    assert await schema.seconds_left(lock) <= 5
    await schema.call("PERSIST", lock)
    assert await examiner.shorten(lock, lifetime=LEAD_TERM)


async def test_some_groups_are_missing_where_others_are_there(schema: Schema) -> None:
    await submit(schema.harness)
    assert [] == await found(schema)
    await schema.harness.backend.queues.register(QUEUE)
    await schema.call("XGROUP", "DESTROY", schema.keys.stream(QUEUE, 3), "workers")

    assert (Kind.GROUP, QUEUE) == ((await only(schema)).kind, (await only(schema)).subject)


async def test_a_queue_that_is_not_listed_is_told_of(schema: Schema) -> None:
    await submit(schema.harness, queue=QueueName("mail"))
    await schema.call("HDEL", schema.keys.queues, "mail")

    finding = await only(schema)

    assert (Kind.UNREGISTERED, "mail") == (finding.kind, finding.subject)


async def test_a_worker_that_is_not_listed_is_put_into_the_list(schema: Schema) -> None:
    await schema.harness.backend.workers.announce(a_heartbeat(), expires_in=seconds(60))
    await schema.call("SREM", schema.keys.workers, WORKER)
    assert Kind.HEARTBEAT is (await only(schema)).kind

    assert await schema.harness.backend.examiner.introduce(WORKER)
    assert [WORKER] == list(await schema.harness.backend.workers.known())
    assert not await schema.harness.backend.examiner.introduce(WorkerId("worker-00000000"))


async def test_a_consumer_has_its_idle_time_and_what_it_owns(schema: Schema) -> None:
    await bring_to(schema.harness, TaskStatus.RUNNING)
    (fact,) = [one for one in await told(schema.harness) if getattr(one, "worker", None) == WORKER]

    (again,) = await schema.harness.backend.examiner.again([fact])  # type: ignore[list-item]  # of a worker

    assert (1, False, True) == (again.owns, again.is_known, again.idle < seconds(60))  # type: ignore[union-attr]  # so is it


@pytest.mark.parametrize("delayed", [3, EXACT + 1])
@pytest.mark.parametrize("text", ["many", "7", "-1", ""])
async def test_a_wrong_count_is_found_and_corrected(schema: Schema, text: str, delayed: int) -> None:
    for _ in range(delayed):
        await submit(schema.harness, delay=seconds(60))
    await submit(schema.harness, queue=QueueName("mail"), delay=seconds(60))
    assert [] == await found(schema)
    await schema.call("HSET", schema.keys.queues, QUEUE, text)

    finding = await only(schema)
    assert (Kind.COUNT, QUEUE) == (finding.kind, finding.subject)
    assert isinstance(finding.fact, CountFact)
    assert (text, delayed) == (finding.fact.text, finding.fact.counted)

    assert await schema.harness.backend.examiner.recount(finding.fact)
    assert [] == await found(schema)
    assert not await schema.harness.backend.examiner.recount(finding.fact)


async def test_an_id_that_is_no_waiting_tasks_counts_for_no_queue(schema: Schema) -> None:
    ended = await bring_to(schema.harness, TaskStatus.SUCCEEDED)
    await schema.call("ZADD", schema.keys.schedule, 1, ended.task_id, 1, "f" * 32)

    assert {Kind.STRAY_MEMBER} == {one.kind for one in await found(schema)}


async def test_no_count_is_told_of_while_the_schedule_moves(schema: Schema, monkeypatch: pytest.MonkeyPatch) -> None:
    await submit(schema.harness, delay=seconds(60))
    inner = Link.run

    async def moving(link: Link, commands: Sequence[Sequence[str]], *, keys: Sequence[str]) -> Sequence[object]:
        await submit(schema.harness, delay=seconds(60))
        return await inner(link, commands, keys=keys)

    monkeypatch.setattr(Link, "run", moving)

    (denied,) = [one for one in await told(schema.harness) if isinstance(one, Denied)]
    assert "counts of scheduled tasks" == denied.what


async def test_a_living_record_that_is_to_expire_too_early_lives_longer(schema: Schema) -> None:
    task = await submit(schema.harness, idempotency_key="k", delay=seconds(25))
    names = {schema.keys.task(task.task_id), schema.keys.idempotency(QUEUE, "k")}
    for name in names:
        await schema.call("EXPIRE", name, 12)
    examiner = schema.harness.backend.examiner
    assert {(Kind.SHORT, name) for name in names} == {(one.kind, one.subject) for one in await found(schema)}

    for name in names:
        assert not await examiner.prolong(name, lifetime=DAY, task_id=task.task_id, version=Version("another"))
        assert not await examiner.prolong(name, lifetime=seconds(5), task_id=task.task_id, version=task.version)
        assert await examiner.prolong(name, lifetime=DAY, task_id=task.task_id, version=task.version)
        assert await schema.seconds_left(name) > DAY.total_seconds() - 60
    assert [] == await found(schema)


async def test_what_is_to_stay_and_expires_stays(schema: Schema) -> None:
    task = await submit(schema.harness, delay=seconds(25))
    await schema.harness.backend.queues.register(task.queue)
    names = {schema.keys.schedule, schema.keys.queues, schema.keys.stream(QUEUE, 5)}
    for name in names:
        await schema.call("EXPIRE", name, 86_400)
    assert {(Kind.SHORT, name) for name in names} == {(one.kind, one.subject) for one in await found(schema)}

    for name in names:
        assert await schema.harness.backend.examiner.persist(name)
        assert not await schema.harness.backend.examiner.persist(name)
    assert [] == await found(schema)
