"""Starts that fetch.lua makes: what it writes is what a commit writes, and of odd records and entries it makes none."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

import pytest
from msgspec.structs import replace

from dtq.domain.status import TaskStatus
from dtq.domain.task import Task
from dtq.ports.answers import TOKENS_REMEMBERED
from dtq.ports.broker import Fetch
from tests.adapters.redis.schema import Schema, opened
from tests.contract.offering import decided, fetch, offers
from tests.contract.redis_harness import open_restricted_harness
from tests.contract.steps import commit, seconds, stored, submit, take
from tests.factories import QUEUE
from tests.servers import RedisServer

OWN = {"task_id", "entry_id", "version", "tokens", "lease", "created_at", "available_at"}
"""What two tasks never have in common."""


def starts(fetched: Fetch) -> Sequence[bool]:
    return [one.started is not None for one in fetched.deliveries]


async def test_a_record_is_written_as_by_a_commit(schema: Schema) -> None:
    harness = schema.harness
    seen, unseen = [await submit(harness, timeout=timedelta(minutes=59)) for _ in range(2)]
    await take(harness, limit=1)
    offered = offers(harness, 1)

    await commit(harness, decided(seen, offered))
    await fetch(harness, replace(offered, starts=offers(harness, 1).starts))

    one, other = await schema.record(seen), await schema.record(unseen)
    assert one.keys() == other.keys()
    assert {name: one[name] for name in one.keys() - OWN} == {name: other[name] for name in other.keys() - OWN}
    assert [f"{now} {before.version}" for now, before in ((one["version"], seen), (other["version"], unseen))] == [
        one["tokens"],
        other["tokens"],
    ]
    left = [await schema.seconds_left(schema.keys.task(task.task_id)) for task in (seen, unseen)]
    assert left[0] == pytest.approx(left[1], abs=5)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("created_at", "soon"),
        ("created_at", "1e3"),
        ("available_at", "-5"),
        ("available_at", "9" * 400),
        ("tokens", " ".join("token" for _ in range(TOKENS_REMEMBERED))),
    ],
)
async def test_of_a_record_that_dtq_does_not_write_nothing_is_started(schema: Schema, field: str, value: str) -> None:
    task = await submit(schema.harness)
    await schema.call("HSET", schema.keys.task(task.task_id), field, value)
    before = await schema.record(task)

    fetched = await fetch(schema.harness, offers(schema.harness, 1))

    assert 1 == len(fetched.deliveries) + len(fetched.unreadable)
    assert not any(starts(fetched))
    assert before == await schema.record(task)


async def rewritten(schema: Schema, **fields: str) -> Task:
    """A task whose record and entry somebody has changed alike."""
    task = await submit(schema.harness)
    stream = schema.keys.stream(QUEUE, task.priority)
    ((entry_id, entry),) = await schema.entries(stream)
    changed = [text for pair in (entry | fields).items() for text in pair]
    new_id = await schema.call("XADD", stream, "*", *changed)
    await schema.call("XDEL", stream, entry_id)
    record = [text for pair in (fields | {"entry_id": new_id}).items() for text in pair]
    await schema.call("HSET", schema.keys.task(task.task_id), *record)
    return task


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("timeout_ms", "long"),
        ("timeout_ms", ""),
        ("timeout_ms", "-1"),
        ("task_type", 'a","b":"'),
        ("task_type", "a\nb"),
    ],
)
async def test_what_both_record_and_entry_have_otherwise_than_dtq_writes_it_is_not_started(
    schema: Schema, field: str, value: str
) -> None:
    task = await rewritten(schema, **{field: value})
    before = await schema.record(task)

    fetched = await fetch(schema.harness, offers(schema.harness, 1))

    assert (1, ()) == (len(fetched.unreadable), tuple(fetched.faults))
    assert before == await schema.record(task)


async def test_an_entry_of_the_same_id_in_another_priority_starts_nothing(schema: Schema) -> None:
    task = await submit(schema.harness, priority=3)
    ((entry_id, entry),) = await schema.entries(schema.keys.stream(QUEUE, 3))
    copied = [text for pair in entry.items() for text in pair]
    await schema.call("XADD", schema.keys.stream(QUEUE, 8), entry_id, *copied)
    offered = offers(schema.harness, 2)

    fetched = await fetch(schema.harness, offered)

    assert [None, decided(task, offered)] == [one.started for one in fetched.deliveries]


async def test_an_entry_of_the_same_id_in_another_queue_starts_nothing(schema: Schema) -> None:
    task = await submit(schema.harness, queue="other", priority=3)
    ((entry_id, entry),) = await schema.entries(schema.keys.stream(task.queue, 3))
    await schema.harness.backend.queues.register(QUEUE)
    copied = [text for pair in entry.items() for text in pair]
    await schema.call("XADD", schema.keys.stream(QUEUE, 3), entry_id, *copied)

    fetched = await fetch(schema.harness, offers(schema.harness, 1))

    assert [False] == list(starts(fetched))
    assert task == await stored(schema.harness, task.task_id)


@pytest.fixture
async def user(redis_server: RedisServer) -> AsyncIterator[Schema]:
    async with opened(redis_server, harnesses=open_restricted_harness) as one:
        yield one


@pytest.mark.parametrize("rule", ["-hset", "-pexpire", "-publish", "resetchannels"])
async def test_where_a_step_may_not_be_made_no_start_is_made(user: Schema, rule: str) -> None:
    tasks = [await submit(user.harness) for _ in range(2)]
    before = [await user.record(task) for task in tasks]
    await user.call("ACL", "SETUSER", user.prefix, rule)

    fetched = await fetch(user.harness, offers(user.harness, 2))

    assert ([False, False], ()) == (list(starts(fetched)), tuple(fetched.faults))
    assert before == [await user.record(task) for task in tasks]


async def test_with_all_permissions_that_are_needed_starts_are_made(user: Schema) -> None:
    task = await submit(user.harness, ttl=None, delay=seconds(0))

    assert [True] == list(starts(await fetch(user.harness, offers(user.harness, 1))))
    assert TaskStatus.RUNNING == (await stored(user.harness, task.task_id)).status
