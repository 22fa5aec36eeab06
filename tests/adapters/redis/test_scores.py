"""Numbers that somebody else may have written: whatever they are, they end no look and give no absurd figure."""

from datetime import UTC, datetime, timedelta

import pytest

from dtq.adapters.redis.schedule import moment_at
from tests.adapters.redis.schema import Schema
from tests.contract.steps import seconds, submit
from tests.factories import QUEUE

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("score", ["-inf", "-1", "0", "0.5"])
def test_a_score_before_all_time_is_the_first_moment(score: str) -> None:
    assert EPOCH == moment_at(score)


@pytest.mark.parametrize("score", ["1e300", "inf"])
def test_a_score_after_all_time_is_the_last_moment(score: str) -> None:
    assert datetime.max.replace(tzinfo=UTC) - moment_at(score) < timedelta(milliseconds=1)


async def test_less_than_no_delayed_tasks_are_none(schema: Schema) -> None:
    await submit(schema.harness, delay=seconds(60))
    await schema.call("HSET", schema.keys.queues, QUEUE, "-3")

    assert 0 == (await schema.harness.backend.queues.stats(QUEUE)).retry_scheduled
