"""Idempotency records that somebody spoiled block no key, and are told of."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from dtq.adapters.memory.faults import GARBLED
from dtq.domain.admission import BrokerLimits
from dtq.domain.errors import BrokerRefused, IdempotencyInProgress
from dtq.ports.answers import Admission, CreateAnswer, KeyTaken
from tests.application.world import World
from tests.factories import OPERATOR, QUEUE

KEYED = {"task_type": "note", "payload": "{}", "idempotency_key": "k"}


async def test_a_key_whose_record_nobody_can_read_is_taken_over_and_told_of(world: World) -> None:
    first = await world.submit("hold", idempotency_key="k")
    world.state.keys.put((QUEUE, "k"), GARBLED, lifetime=timedelta(days=1))

    second = await world.tasks.submit(KEYED)

    assert first != second.task_id
    assert not second.duplicate
    assert [{"queue": QUEUE}] == world.notes.of("idempotency_record_unreadable")
    # what becomes of the first one changes nothing of that
    await world.tasks.cancel(first, by=OPERATOR)
    with pytest.raises(IdempotencyInProgress) as raised:
        await world.tasks.submit(KEYED)
    assert second.task_id == raised.value.task_id


async def test_a_submission_whose_key_cannot_be_had_is_refused_as_not_done(world: World) -> None:
    taken = KeyTaken(record=None, text="what cannot be compared")
    world.backend = replace(world.backend, broker=Unyielding(world.backend.broker, answer=taken))
    world.limit(BrokerLimits())

    with pytest.raises(BrokerRefused):
        await world.tasks.submit(KEYED)


class Unyielding:
    """A broker whose answer to every creation is the same."""

    def __init__(self, broker: Any, *, answer: CreateAnswer) -> None:
        self._broker = broker
        self._answer = answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    async def create(self, admissions: Sequence[Admission], *, limits: BrokerLimits) -> Sequence[CreateAnswer]:
        del limits
        return [self._answer] * len(admissions)
