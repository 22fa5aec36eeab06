"""A call that takes several requests, one of which fails: what was answered before is told, and what was never sent."""

import json
from datetime import timedelta
from typing import Any

import pytest

from dtq.adapters.redis.broker import RedisBroker
from dtq.adapters.redis.client import Reply, Request
from dtq.adapters.redis.envelope import MAX_ACTS, MAX_BYTES
from dtq.domain import lifecycle
from dtq.domain.change import Change
from dtq.domain.errors import BrokerOutOfMemory, BrokerUnavailable, OutcomeUnknown
from dtq.domain.status import TaskStatus
from dtq.ports.answers import Applied, PartlyAnswered
from tests.adapters.redis.schema import Schema
from tests.contract.steps import LIMITS, now
from tests.factories import OPERATOR, a_token, an_admission

FULL = BrokerOutOfMemory("full")
LOST = OutcomeUnknown("no answer")
AWAY = BrokerUnavailable("no connection")


def fail(schema: Schema, monkeypatch: pytest.MonkeyPatch, *, request: int, by: BrokerUnavailable) -> None:
    """Let the request of this number, counted from 1, fail instead of being sent."""
    broker = schema.harness.backend.broker
    assert isinstance(broker, RedisBroker)
    client, sent = broker._link.client, list[Request]()  # noqa: SLF001 - a single request shows nowhere else
    send = client.send

    async def send_or_fail(written: Request, *, block: timedelta = timedelta()) -> Reply:
        # a server that does not know the script is asked again
        if written.command[0] == "EVALSHA" and written not in sent:
            sent.append(written)
        if sent[request - 1 :] == [written]:
            raise by
        return await send(written, block=block)

    monkeypatch.setattr(client, "send", send_or_fail)


@pytest.mark.parametrize(
    ("error", "told"),
    [(FULL, [BrokerOutOfMemory] * 6), (LOST, [OutcomeUnknown] * 4 + [BrokerUnavailable] * 2), (AWAY, [type(AWAY)] * 6)],
)
async def test_submissions_that_were_made_are_told_of_though_a_later_request_fails(
    schema: Schema, monkeypatch: pytest.MonkeyPatch, error: BrokerUnavailable, told: list[type]
) -> None:
    payload = json.dumps({"text": "x" * (MAX_BYTES // 4)})
    admissions = [an_admission(now=now(schema.harness), payload=payload) for _ in range(10)]
    broker = schema.harness.backend.broker
    fail(schema, monkeypatch, request=2, by=error)

    with pytest.raises(PartlyAnswered) as partly:
        await broker.create(admissions, limits=LIMITS)

    assert [Applied] * 4 + told == [type(answer) for answer in partly.value.answers]
    made = [await broker.load(one.change.after.task_id) is not None for one in admissions]
    assert [True] * 4 + [False] * 6 == made


async def test_where_the_first_request_fails_that_is_what_all_of_them_hear(
    schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    admissions = [an_admission(now=now(schema.harness)) for _ in range(MAX_ACTS + 1)]
    fail(schema, monkeypatch, request=1, by=FULL)

    with pytest.raises(BrokerOutOfMemory):
        await schema.harness.backend.broker.create(admissions, limits=LIMITS)


async def test_changes_that_were_made_are_told_of_too(schema: Schema, monkeypatch: pytest.MonkeyPatch) -> None:
    harness, broker = schema.harness, schema.harness.backend.broker
    admissions = [an_admission(now=now(harness)) for _ in range(MAX_ACTS + 1)]
    created: Any = await broker.create(admissions, limits=LIMITS)
    changes = [lifecycle.cancel(answer.task, now=now(harness), token=a_token(), by=OPERATOR) for answer in created]
    fail(schema, monkeypatch, request=2, by=AWAY)

    with pytest.raises(PartlyAnswered) as partly:
        await broker.commit([change for change in changes if isinstance(change, Change)])

    *made, last = partly.value.answers
    assert [TaskStatus.CANCELLED] * MAX_ACTS == [answer.task.status for answer in made]
    assert last is AWAY
