"""Between the look at the claims and their return another leader may have been there."""

from typing import Any

import pytest

from dtq.adapters.redis.broker import RedisBroker
from dtq.adapters.redis.client import Request
from dtq.domain import lifecycle
from dtq.domain.status import Place, TaskStatus
from tests.adapters.redis.schema import Schema
from tests.contract.steps import bring_to, claim, make, now, seconds
from tests.factories import a_token


async def test_a_claim_that_was_promoted_meanwhile_is_not_returned(
    schema: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness, broker = schema.harness, schema.harness.backend.broker
    task = await claim(harness, await bring_to(harness, TaskStatus.PENDING))
    assert isinstance(broker, RedisBroker)
    client = broker._link.client  # noqa: SLF001 - the moment between two calls of one method can be met nowhere else
    send = client.send

    async def send_and_promote(request: Request, **named: Any) -> Any:
        reply = await send(request, **named)
        if request.command[0] == "ZRANGEBYSCORE":
            monkeypatch.undo()
            await make(harness, lifecycle.promote(task, now=now(harness), token=a_token()))
        return reply

    monkeypatch.setattr(client, "send", send_and_promote)

    returned = await broker.return_stale(claimed_before=now(harness) + seconds(1), now=now(harness), limit=100)

    census = await harness.census()
    assert (0, set(), {task.task_id}) == (returned, census[Place.SCHEDULE], census[Place.READY])
