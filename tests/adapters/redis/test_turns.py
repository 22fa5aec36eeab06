"""Ends recorded and entries fetched in one call: what becomes of the one where the other is refused."""

from dtq.domain.change import Change
from dtq.ports.answers import Applied
from tests.adapters.redis.test_permissions import User, user
from tests.contract.steps import decide_finish, run, submit
from tests.factories import QUEUE, WORKER, a_success

__all__ = ["user"]


async def test_what_was_made_is_told_of_though_nothing_may_be_fetched(user: User) -> None:
    task = await run(user.harness)
    await submit(user.harness)
    change = decide_finish(user.harness, task, a_success())
    assert isinstance(change, Change)
    await user.change("-exists")

    broker = user.harness.backend.broker
    fetched = await broker.fetch(QUEUE, worker=WORKER, limit=1, reap_idle=None, after=[change])

    assert [Applied] == [type(answer) for answer in fetched.answers]
    assert (0, 1) == (len(fetched.deliveries), len(fetched.faults))
