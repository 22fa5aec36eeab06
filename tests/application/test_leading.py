"""One leader moves due work to its queue; another takes over; nothing is promoted twice or early."""

import asyncio
from datetime import timedelta

import pytest
from msgspec.structs import replace

from dtq.application.group_commit import GroupCommit
from dtq.application.loops.lead import Lead, LeadParts
from dtq.application.nudge import StopSign
from dtq.domain.errors import BrokerUnavailable
from dtq.domain.status import TaskStatus
from tests.application import handlers
from tests.application.link import LOSSES, Link, Loss, over
from tests.application.stage import MiddleChance
from tests.application.world import World
from tests.factories import OPERATOR, QUEUE

S = TaskStatus


async def test_a_delayed_task_runs_when_it_is_due_and_not_before(world: World) -> None:
    await world.hire()
    task_id = await world.submit(delay_seconds=7.1)

    await world.advance(7.09)
    assert S.PENDING == await world.status(task_id)
    await world.advance(0.02)

    assert S.SUCCEEDED == await world.status(task_id)


async def test_a_task_that_becomes_due_before_the_leader_expects_it_waits_a_quarter_second(world: World) -> None:
    await world.hire()
    await world.submit(delay_seconds=100)
    await world.advance(1)
    task_id = await world.submit(delay_seconds=0.001)

    await world.advance(0.26)

    assert S.SUCCEEDED == await world.status(task_id)


async def test_more_than_a_batch_is_promoted_at_once(world: World) -> None:
    await world.hire(concurrency=50)
    fields = {"task_type": "note", "payload": "{}", "delay_seconds": 5}
    await world.tasks.submit_many([fields] * 250)

    await world.advance(5.001)

    assert 250 == len(handlers.runs)


async def test_a_batch_goes_to_the_queue_highest_priority_first(world: World) -> None:
    fields = {"task_type": "note", "payload": "{}", "delay_seconds": 5}
    await world.tasks.submit_many([{**fields, "priority": priority} for priority in (1, 9, 5, 9)])
    async with world.backend.events.subscribe() as events:
        staff = await world.hire()
        staff.link.stall("fetch")
        await world.advance(6)
        queued = [event for event in [await anext(events) for _ in range(5)] if event.task_id is not None]

    priorities = [(await world.task(event.task_id)).priority for event in queued if event.task_id is not None]
    assert [9, 9, 5, 1] == priorities


async def test_a_retry_comes_back_after_its_delay(world: World) -> None:
    await world.hire()
    task_id = await world.submit("fail", payload='{"error": "retryable"}', max_attempts=2)
    assert S.RETRYING == await world.status(task_id)

    await world.advance(1.01)

    assert S.DEAD_LETTERED == await world.status(task_id)
    assert [1, 2] == [context.attempt for context in handlers.runs]


async def test_a_delayed_task_past_its_time_to_live_expires(world: World) -> None:
    await world.hire()
    task_id = await world.submit(delay_seconds=10, metadata='{"ttl_seconds": 5}')

    await world.advance(11)

    assert (S.EXPIRED, []) == (await world.status(task_id), handlers.runs)


async def test_another_worker_leads_after_the_leader_is_gone(world: World) -> None:
    first = await world.hire()
    await world.hire()
    await world.advance(5)
    first.kill()
    task_id = await world.submit(delay_seconds=1)

    await world.advance(14)

    assert S.SUCCEEDED == await world.status(task_id)


async def test_only_one_leads(world: World) -> None:
    first = await world.hire()
    second = await world.hire()

    await world.advance(30)

    assert first.link.calls["next_due"] > 100
    assert 0 == second.link.calls["next_due"]


def a_lead(world: World, link: Link) -> Lead:
    backend = over(link, world.backend)
    parts = LeadParts(
        broker=backend.broker,
        commits=GroupCommit(backend.broker.commit),
        leadership=backend.leadership,
        stop=StopSign(world.clock),
        clock=world.clock,
        ids=world.ids,
        chance=MiddleChance(),
        observer=world.notes,
    )
    return Lead(parts)


@pytest.mark.parametrize("loss", LOSSES)
async def test_who_gave_the_lead_up_leads_no_more_whatever_the_broker_hears_of_it(world: World, loss: Loss) -> None:
    link = Link()
    lead = a_lead(world, link)
    step = asyncio.ensure_future(lead.step())
    await world.advance(1)
    await step
    led: list[bool] = [lead.is_leading]
    link.watch("resign", lambda: led.append(lead.is_leading))
    link.lose("resign", loss)

    with pytest.raises(BrokerUnavailable):
        await lead.resign()

    # not even while the broker is told: a peer may lead from that moment on
    assert [True, False, False] == [*led, lead.is_leading]


async def test_a_leader_that_stalls_past_its_term_leads_no_more(world: World) -> None:
    first = await world.hire()
    second = await world.hire()
    await world.advance(1)
    first.link.stall("acquire", "next_due")
    await world.advance(20)
    task_id = await world.submit(delay_seconds=1)

    first.link.go_on()
    await world.advance(5)

    assert S.SUCCEEDED == await world.status(task_id)
    assert [S.QUEUED] == [step for step in second.notes.steps(task_id) if step is S.QUEUED]


async def test_a_promotion_whose_reply_was_lost_happens_once(world: World) -> None:
    for loss in LOSSES:
        leader = await world.hire()
        await world.advance(1)
        handlers.runs.clear()
        leader.link.lose("commit", loss)
        task_id = await world.submit(delay_seconds=1)

        await world.advance(4)

        assert S.SUCCEEDED == await world.status(task_id)
        assert 1 == len(handlers.runs)
        leader.stop()
        await world.advance(2)


async def test_a_claim_whose_reply_was_lost_comes_back_after_a_minute(world: World) -> None:
    leader = await world.hire()
    await world.advance(1)
    task_id = await world.submit(delay_seconds=1)
    leader.link.lose("take_due", Loss.AFTER)
    await world.advance(5)
    assert S.PENDING == await world.status(task_id)

    await world.advance(65)

    assert S.SUCCEEDED == await world.status(task_id)


async def test_a_task_that_was_cancelled_while_it_was_claimed_does_not_run(world: World) -> None:
    leader = await world.hire()
    await world.advance(1)
    task_id = await world.submit(delay_seconds=1)
    leader.link.stall("commit")
    await world.advance(2)

    await world.tasks.cancel(task_id, by=OPERATOR)
    leader.link.go_on()
    await world.advance(2)

    assert (S.CANCELLED, []) == (await world.status(task_id), handlers.runs)
    assert {} == world.state.schedule


async def test_a_task_that_waits_again_for_later_is_not_promoted_by_an_old_claim(world: World) -> None:
    leader = await world.hire()
    await world.advance(1)
    task_id = await world.submit(delay_seconds=1)
    leader.link.stall("commit")
    await world.advance(2)
    later = world.clock.now() + timedelta(minutes=1)
    # as if another leader had promoted it, and it had run, and failed
    world.rewrite(replace(await world.task(task_id), status=S.RETRYING, attempt=1, available_at=later))
    world.state.schedule[task_id] = replace(world.state.schedule[task_id], due=later, claimed_at=None)

    leader.link.go_on()
    await world.advance(30)

    assert S.RETRYING == await world.status(task_id)
    assert {task_id} == set(world.state.schedule)


async def test_a_task_that_vanishes_while_it_is_claimed_is_forgotten(world: World) -> None:
    leader = await world.hire()
    await world.advance(1)
    task_id = await world.submit(delay_seconds=1)
    leader.link.stall("commit")
    await world.advance(2)
    world.state.records.remove(task_id)

    leader.link.go_on()
    await world.advance(1)

    assert {} == world.state.schedule


async def test_an_id_without_a_task_is_forgotten(world: World) -> None:
    await world.hire()
    task_id = await world.submit(delay_seconds=1)
    world.state.records.remove(task_id)

    await world.advance(2)

    assert {} == world.state.schedule


async def test_an_id_whose_task_does_not_wait_is_forgotten(world: World) -> None:
    task_id = await world.submit("hold", delay_seconds=1)
    slot = world.state.schedule[task_id]
    await world.hire()
    await world.advance(2)
    assert S.RUNNING == await world.status(task_id)

    world.state.schedule[task_id] = slot
    await world.advance(1)

    assert {} == world.state.schedule
    assert S.RUNNING == await world.status(task_id)


async def test_a_paused_queue_is_still_promoted_to(world: World) -> None:
    await world.hire()
    await world.queues.pause(QUEUE, by=OPERATOR)
    task_id = await world.submit(delay_seconds=1)

    await world.advance(2)

    assert S.QUEUED == await world.status(task_id)
