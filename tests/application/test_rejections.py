from typing import Any

import pytest

from dtq.application.rejections import reason_of
from dtq.domain.admission import BrokerLimits
from dtq.domain.errors import (
    BrokerOutOfMemory,
    BrokerUnavailable,
    DtqError,
    IdempotencyInProgress,
    InvalidRequest,
    InvalidTask,
    OutcomeUnknown,
    PayloadTooLarge,
    QueueFull,
    UnknownTaskType,
)
from dtq.domain.task import TaskId
from tests.application.world import World


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (InvalidTask(()), "invalid_task"),
        (InvalidRequest(()), "invalid_request"),
        (UnknownTaskType("x"), "unknown_task_type"),
        (PayloadTooLarge(size=2, limit=1), "payload_too_large"),
        (IdempotencyInProgress(TaskId("1"), status=None), "idempotency"),
        (QueueFull("schedule_full", value=1, limit=1), "schedule_full"),
        (BrokerUnavailable(), "broker_unavailable"),
        (BrokerOutOfMemory(), "broker_unavailable"),
        (OutcomeUnknown(), "outcome_unknown"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_each_error_has_its_reason(error: DtqError, reason: str) -> None:
    assert reason == reason_of(error)


@pytest.mark.parametrize(
    ("fields", "queue", "reason"),
    [
        ({"task_type": "nobody"}, "default", "unknown_task_type"),
        ({"task_type": "nobody", "queue": None}, "default", "unknown_task_type"),
        ({"priority": 10, "queue": "mail"}, "mail", "invalid_task"),
        ({"queue": {"a": 1}}, None, "invalid_task"),
        ({}, "default", "queue_full"),
    ],
)
async def test_a_refused_submission_is_told_with_what_it_calls_its_queue(
    world: World, fields: dict[str, Any], queue: str | None, reason: str
) -> None:
    world.limit(BrokerLimits(queue_depth=0))

    with pytest.raises(DtqError):
        await world.submit(**({"task_type": "note"} | fields))

    assert [{"queue": queue, "reason": reason}] == world.notes.of("submission_rejected")


async def test_each_refusal_of_many_submissions_is_told(world: World) -> None:
    good = {"task_type": "note", "payload": "{}"}

    await world.tasks.submit_many([good, good | {"task_type": "nobody"}, good | {"priority": -1}])

    reasons = [notice["reason"] for notice in world.notes.of("submission_rejected")]
    assert ["unknown_task_type", "invalid_task"] == reasons


async def test_what_could_not_be_read_is_told_without_a_queue(world: World) -> None:
    world.tasks.rejected("invalid_request")

    assert [{"queue": None, "reason": "invalid_request"}] == world.notes.of("submission_rejected")
