"""A call that is given up in its middle harms no later one."""

import asyncio

import pytest

from dtq.adapters.memory.clock import settle
from tests.contract.harness import Harness
from tests.contract.steps import LIMITS, now, stored, submit
from tests.factories import an_admission


@pytest.mark.parametrize("turns", range(12))
async def test_a_call_may_be_canceled_at_any_point_and_its_answer_reaches_nobody_else(
    harness: Harness, turns: int
) -> None:
    broker = harness.backend.broker
    given_up, wanted = await submit(harness), await submit(harness)
    calls = [asyncio.create_task(broker.load(given_up.task_id)) for _ in range(3)]

    await settle(turns=turns)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)

    assert [wanted.task_id] * 6 == [(await stored(harness, wanted.task_id)).task_id for _ in range(6)]


@pytest.mark.parametrize("turns", range(12))
async def test_a_change_whose_call_is_canceled_is_made_whole_or_not_at_all(harness: Harness, turns: int) -> None:
    broker = harness.backend.broker
    admission = an_admission(now=now(harness))
    creating = asyncio.create_task(broker.create([admission], limits=LIMITS))

    await settle(turns=turns)
    creating.cancel()
    await asyncio.gather(creating, return_exceptions=True)
    await broker.create([admission], limits=LIMITS)

    assert 1 == (await harness.backend.queues.stats(admission.change.after.queue)).depth
