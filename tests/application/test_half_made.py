"""What is said of a submission whose first try stopped half-way, and whose repeat is refused for another reason."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from dtq.domain.admission import BrokerLimits
from dtq.domain.errors import OutcomeUnknown, StepStopped
from dtq.domain.idempotency import IdempotencyRecord, RecordState
from dtq.domain.task import TaskId
from dtq.ports.answers import Admission, Broken, CreateAnswer, Full, KeyTaken
from tests.application.world import World

KEYED = {"task_type": "note", "payload": "{}", "idempotency_key": "key-1"}
OTHERS = IdempotencyRecord(
    task_id=TaskId("another"), state=RecordState.PROCESSING, updated_at=datetime(2026, 1, 1, tzinfo=UTC)
)


@pytest.mark.parametrize(
    "repeat", [KeyTaken(record=OTHERS, text="its text"), Full(reason="queue_full", value=1, limit=1)]
)
async def test_a_creation_that_stopped_half_way_is_unknown_whatever_its_repeat_is_refused_for(
    world: World, repeat: CreateAnswer
) -> None:
    broker = Scripted(world.backend.broker, answers=[Broken("half-way"), repeat])
    world.backend = replace(world.backend, broker=broker)
    world.limit(BrokerLimits())
    # who has the key cannot be found out
    world.link.refuse("load", times=9)

    with pytest.raises(OutcomeUnknown):
        await world.tasks.submit(KEYED)


async def test_a_creation_that_stops_each_time_is_no_silence_of_the_broker(world: World) -> None:
    world.backend = replace(world.backend, broker=Scripted(world.backend.broker, answers=[Broken("half-way")] * 9))
    world.limit(BrokerLimits())

    with pytest.raises(StepStopped, match="could not be created in 5 tries"):
        await world.tasks.submit(KEYED)


class Scripted:
    """A broker that answers creations as it is told."""

    def __init__(self, broker: Any, *, answers: list[CreateAnswer]) -> None:
        self._broker = broker
        self._answers = answers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    async def create(self, admissions: Sequence[Admission], *, limits: BrokerLimits) -> Sequence[CreateAnswer]:
        del admissions, limits
        return [self._answers.pop(0)]
