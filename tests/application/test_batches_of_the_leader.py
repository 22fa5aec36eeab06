"""However much is due at once, the leader takes no more than the contract's hundred (sections 4 and 7)."""

from datetime import timedelta

from tests.application.world import World


async def test_the_leader_takes_a_hundred_at_once(world: World) -> None:
    staff = await world.hire()
    fields = {"task_type": "note", "payload": "{}", "delay_seconds": 5}
    await world.tasks.submit_many([fields] * 250)
    staff.link.stall("commit")

    await world.advance(6)

    now = world.clock.now()
    on_loan = await world.backend.broker.return_stale(claimed_before=now + timedelta(days=1), now=now, limit=1_000)
    assert 100 == on_loan
