"""What strangers and accidents do to streams and records, and how large things are split."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from dtq.adapters.redis import connect
from dtq.adapters.redis.client import Client
from dtq.adapters.redis.keys import GROUP, Keyspace
from dtq.domain.errors import BrokerUnavailable
from dtq.domain.task import NO_VERSION
from dtq.ports.answers import Applied, Broken
from dtq.ports.backend import Backend, BackendOptions
from tests.contract.steps import LIMITS
from tests.factories import QUEUE, WORKER, a_task_id, an_admission
from tests.servers import RedisServer

KEYS = Keyspace("streams")
LONG = timedelta(seconds=5)


@pytest.fixture
async def client(redis_server: RedisServer) -> AsyncIterator[Client]:
    client = Client(redis_server.url, timeout=LONG)
    yield client
    await client.pipeline([("DEL", key) for key in await client.call("KEYS", "streams:*")])
    await client.close()


@pytest.fixture
async def backend(redis_server: RedisServer, client: Client) -> AsyncIterator[Backend]:
    del client  # which removes the keys afterwards
    backend = connect(redis_server.url, options=BackendOptions(key_prefix="streams"))
    yield backend
    await backend.server.close()


@pytest.mark.parametrize("command", ["DEL", "XGROUP"])
async def test_a_wait_goes_on_after_its_group_was_lost(backend: Backend, client: Client, command: str) -> None:
    await backend.queues.register(QUEUE)
    waiting = asyncio.create_task(backend.broker.wait(QUEUE, worker=WORKER, timeout=LONG))
    while "cmd=xreadgroup" not in await client.call("CLIENT", "LIST"):
        pass
    stream = KEYS.stream(QUEUE, 4)
    await client.call(*(("DEL", stream) if command == "DEL" else ("XGROUP", "DESTROY", stream, GROUP)))

    (created,) = await backend.broker.create([an_admission(now=backend.clock.now(), priority=4)], limits=LIMITS)

    assert isinstance(created, Applied)
    assert [created.task.receipt] == list(await waiting)


async def test_a_fetch_that_finds_nothing_makes_groups_that_are_lost(backend: Backend, client: Client) -> None:
    await backend.queues.register(QUEUE)
    streams = KEYS.streams(QUEUE)
    await client.pipeline([("DEL", stream) for stream in streams])

    fetched = await backend.broker.fetch(QUEUE, worker=WORKER, limit=9, reap_idle=None)

    assert ([], []) == (list(fetched.deliveries), list(fetched.faults))
    assert [1] * 10 == [len(await client.call("XINFO", "GROUPS", stream)) for stream in streams]


async def test_a_record_that_somebody_spoiled_stops_no_other_work(backend: Backend, client: Client) -> None:
    admissions = [an_admission(now=backend.clock.now()) for _ in range(3)]
    await backend.broker.create(admissions, limits=LIMITS)
    spoiled = admissions[1].change.after.task_id
    await client.call("HSET", KEYS.task(spoiled), "created_at", "yesterday")

    fetched = await backend.broker.fetch(QUEUE, worker=WORKER, limit=9, reap_idle=None)

    assert 2 == len(fetched.deliveries)
    assert [True] == [spoiled in one.reason for one in fetched.unreadable]
    assert 2 == len((await backend.broker.recent(queue=None, status=None, limit=9)).tasks)
    with pytest.raises(BrokerUnavailable):
        await backend.broker.load(spoiled)


async def test_a_change_that_meets_a_key_of_another_kind_breaks_alone(backend: Backend, client: Client) -> None:
    admissions = [an_admission(now=backend.clock.now()) for _ in range(3)]
    await client.call("SET", KEYS.task(admissions[1].change.after.task_id), "text", "PX", 60_000)

    answers = await backend.broker.create(admissions, limits=LIMITS)

    assert [Applied, Broken, Applied] == [type(answer) for answer in answers]


async def test_more_changes_than_one_trip_carries_are_answered_in_order(backend: Backend) -> None:
    admissions = [an_admission(now=backend.clock.now()) for _ in range(250)]

    answers = await backend.broker.create(admissions, limits=LIMITS)

    ids = [answer.task.task_id for answer in answers if isinstance(answer, Applied)]
    assert [admission.change.after.task_id for admission in admissions] == ids


@pytest.mark.parametrize("are_recorded", [True, False])
async def test_large_payloads_take_several_trips_both_ways(
    backend: Backend, client: Client, *, are_recorded: bool
) -> None:
    payload = '{"text": "' + "x" * 250_000 + '"}'
    admissions = [an_admission(now=backend.clock.now(), payload=payload) for _ in range(12)]
    await backend.broker.create(admissions, limits=LIMITS)
    if not are_recorded:
        # then each entry is looked at by itself
        await client.pipeline([("DEL", KEYS.task(one.change.after.task_id)) for one in admissions])

    sweeps = []
    while fetched := (await backend.broker.fetch(QUEUE, worker=WORKER, limit=12, reap_idle=None)).deliveries:
        sweeps.append(fetched)

    deliveries = [delivery for sweep in sweeps for delivery in sweep]
    assert len(sweeps) > 1
    assert [payload] * 12 == [delivery.fields["payload"] for delivery in deliveries]


async def test_an_entry_whose_body_is_gone_heals_when_it_is_reaped(backend: Backend, client: Client) -> None:
    await backend.broker.create([an_admission(now=backend.clock.now()) for _ in range(3)], limits=LIMITS)
    first, *_ = (await backend.broker.fetch(QUEUE, worker=WORKER, limit=3, reap_idle=None)).deliveries
    await client.call("XDEL", KEYS.stream(QUEUE, first.receipt.priority), first.receipt.entry_id)

    reaped = await backend.broker.fetch(QUEUE, worker=WORKER, limit=9, reap_idle=timedelta(milliseconds=1))
    while len(reaped.deliveries) < 2:
        reaped = await backend.broker.fetch(QUEUE, worker=WORKER, limit=9, reap_idle=timedelta(milliseconds=1))

    assert 2 == (await backend.queues.stats(QUEUE)).pending


async def test_the_dead_letter_of_a_task_without_record_is_found_far_back(backend: Backend, client: Client) -> None:
    wanted = a_task_id()
    fields = ("task_id", wanted, "payload", "{}")
    await client.call("XADD", KEYS.dead_letters, "*", *fields)
    await client.pipeline([("XADD", KEYS.dead_letters, "*", "task_id", a_task_id()) for _ in range(250)])

    letter = await backend.dead_letters.get(wanted)

    assert letter is not None
    assert wanted == letter.fields["task_id"]
    assert await backend.dead_letters.get(a_task_id()) is None


async def test_a_count_that_a_vanished_task_left_behind_keeps_no_queue(backend: Backend, client: Client) -> None:
    admission = an_admission(now=backend.clock.now(), delay=LONG)
    await backend.broker.create([admission], limits=LIMITS)
    task_id = admission.change.after.task_id
    await client.call("DEL", KEYS.task(task_id))

    assert await backend.broker.forget(task_id, version=NO_VERSION)

    assert 0 == (await backend.queues.stats(QUEUE)).retry_scheduled
    assert await backend.upkeep.retire(QUEUE)
