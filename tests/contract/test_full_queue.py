"""A limit on waiting work refuses submissions, and nothing that was admitted before."""

import pytest

from dtq.domain.admission import BrokerLimits
from dtq.domain.lifecycle import requeue
from dtq.domain.status import TaskStatus
from dtq.ports.answers import Applied, Full
from tests.contract.harness import Harness
from tests.contract.steps import bring_to, create, make, now, promote
from tests.factories import OPERATOR, QUEUE, a_token, an_admission


@pytest.mark.parametrize("before", [TaskStatus.PENDING, TaskStatus.RETRYING, TaskStatus.DEAD_LETTERED])
async def test_what_was_admitted_goes_into_a_full_queue(harness: Harness, before: TaskStatus) -> None:
    limits = BrokerLimits(queue_depth=1)
    admitted = await bring_to(harness, before)
    assert isinstance(await create(harness, an_admission(), limits=limits), Applied)
    if before is TaskStatus.DEAD_LETTERED:
        await make(harness, requeue(admitted, now=now(harness), token=a_token(), by=OPERATOR))
    else:
        await harness.advance(admitted.available_at - now(harness))
        await promote(harness, admitted)

    assert 2 == (await harness.backend.queues.stats(QUEUE)).depth
    assert Full(reason="queue_full", value=2, limit=1) == await create(harness, an_admission(), limits=limits)
