"""A doctor whose user is denied something tells of that, and goes on with the rest."""

from collections.abc import AsyncIterator

import pytest

from dtq.adapters.redis.client import Client
from dtq.domain.findings import Kind
from dtq.ports.backend import BackendOptions
from tests.adapters.redis.schema import Schema
from tests.adapters.redis.test_examined_types import doctor_of
from tests.contract.redis_harness import open_restricted_harness
from tests.contract.steps import submit
from tests.factories import OPERATOR, QUEUE
from tests.servers import RedisServer


@pytest.fixture
async def restricted(redis_server: RedisServer) -> AsyncIterator[Schema]:
    client = Client(redis_server.url, timeout=BackendOptions().call_timeout)
    async with open_restricted_harness(options=BackendOptions(), server=redis_server) as harness:
        schema = Schema(harness, client)
        await client.call("ACL", "SETUSER", schema.prefix, "+type", "+pttl", "+xinfo|stream", "+persist")
        yield schema
    await client.close()


async def deny(schema: Schema, command: str) -> None:
    await schema.call("ACL", "SETUSER", schema.prefix, f"-{command}")


async def homeless(schema: Schema) -> None:
    task = await submit(schema.harness)
    await schema.harness.backend.queues.register(QUEUE)
    await schema.call("XDEL", schema.keys.stream(QUEUE, task.priority), task.entry_id or "")


async def test_without_info_the_rest_is_examined(restricted: Schema) -> None:
    await homeless(restricted)
    await deny(restricted, "info")

    report = await doctor_of(restricted).examine()

    assert [Kind.HOMELESS] == [one.kind for one in report.groups]
    assert ["the server"] == [one.what for one in report.denied]


async def test_without_time_the_report_says_what_was_not_examined(restricted: Schema) -> None:
    await homeless(restricted)
    await deny(restricted, "time")

    report = await doctor_of(restricted).examine()

    assert [] == report.groups
    assert {"the server", "stored names"} <= {one.what for one in report.denied}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("pexpire", {Kind.HOMELESS: (0, 1), Kind.ETERNAL: (0, 1), Kind.SHORT: (1, 0)}),
        # what is repaired and could not be audited is the last of it
        ("xadd", {Kind.HOMELESS: (0, 1), Kind.ETERNAL: (0, 1), Kind.SHORT: (0, 1)}),
    ],
)
async def test_a_repair_that_is_not_permitted_is_left_and_the_others_made(
    restricted: Schema, command: str, expected: dict[Kind, tuple[int, int]]
) -> None:
    schema = restricted
    await homeless(schema)
    keyed = await submit(schema.harness, queue=QUEUE, idempotency_key="k")
    name = schema.keys.task(keyed.task_id)
    await schema.call("PERSIST", name)
    await schema.call("EXPIRE", schema.keys.queues, 600)
    await deny(schema, command)

    report = await doctor_of(schema).repair(by=OPERATOR)

    made = {one.kind: (one.repaired, one.left) for one in report.groups}
    assert expected | {Kind.SERVER: (0, 1)} == made
    reasons = [reason for one in report.groups for reason in one.reasons if one.kind is not Kind.SERVER]
    assert [] != [reason for reason in reasons if command in reason]
