"""Submissions: admitted or refused as a whole, once per key, and never made twice by a lost reply."""

import asyncio
import json

import pytest

from dtq.application.admitting import MAX_SUBMISSIONS
from dtq.application.creating import MAX_WAITING_BYTES, RECORD_BYTES, Submitted
from dtq.domain.admission import BrokerLimits
from dtq.domain.errors import (
    BrokerBehind,
    BrokerOutOfMemory,
    BrokerUnavailable,
    IdempotencyInProgress,
    InvalidRequest,
    InvalidTask,
    OutcomeUnknown,
    QueueFull,
    UnknownTaskType,
)
from dtq.domain.status import TaskStatus
from tests.application.link import LOSSES, Loss
from tests.application.world import World
from tests.factories import OPERATOR, QUEUE

S = TaskStatus
FIELDS = {"task_type": "note", "payload": '{"n": 1}'}
KEYED = {**FIELDS, "idempotency_key": "key-1"}


async def depth(world: World) -> int:
    return (await world.queues.stats(QUEUE)).depth


async def test_a_submission_is_queued_and_counted_once(world: World) -> None:
    submitted = await world.tasks.submit(FIELDS)

    assert submitted.task == await world.task(submitted.task_id)
    assert not submitted.duplicate
    assert [S.QUEUED] == world.notes.steps(submitted.task_id)


async def test_a_delayed_submission_is_pending(world: World) -> None:
    submitted = await world.tasks.submit({**FIELDS, "delay_seconds": 1})

    assert S.PENDING == await world.status(submitted.task_id)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [({"priority": 10}, InvalidTask), ({"task_type": "nobody"}, UnknownTaskType), ({"payload": "[]"}, InvalidTask)],
)
async def test_a_bad_submission_writes_nothing(
    world: World, fields: dict[str, object], expected: type[Exception]
) -> None:
    with pytest.raises(expected):
        await world.tasks.submit({**FIELDS, **fields})

    assert 0 == world.link.calls["create"]


async def test_a_key_that_is_in_use_names_its_task(world: World) -> None:
    first = await world.tasks.submit(KEYED)

    with pytest.raises(IdempotencyInProgress) as raised:
        await world.tasks.submit(KEYED)

    assert (first.task_id, S.QUEUED) == (raised.value.task_id, raised.value.status)
    assert 1 == await depth(world)


async def test_a_key_whose_task_has_ended_answers_with_it(world: World) -> None:
    first = await world.tasks.submit(KEYED)
    await world.hire()
    await world.settle()

    again = await world.tasks.submit(KEYED)

    assert Submitted(task_id=first.task_id, task=await world.task(first.task_id), duplicate=True) == again
    assert [S.QUEUED] == world.notes.steps(first.task_id)


async def test_a_key_whose_ended_task_is_gone_still_answers(world: World) -> None:
    first = await world.tasks.submit(KEYED)
    await world.hire()
    await world.settle()
    world.state.records.remove(first.task_id)

    assert Submitted(task_id=first.task_id, task=None, duplicate=True) == await world.tasks.submit(KEYED)


async def test_a_key_whose_unfinished_task_vanished_is_taken_over(world: World) -> None:
    first = await world.tasks.submit(KEYED)
    world.state.records.remove(first.task_id)

    second = await world.tasks.submit(KEYED)

    assert not second.duplicate
    assert second.task_id != first.task_id
    with pytest.raises(IdempotencyInProgress) as raised:
        await world.tasks.submit(KEYED)
    assert second.task_id == raised.value.task_id


async def test_of_two_that_take_a_key_over_one_gets_it(world: World) -> None:
    first = await world.tasks.submit(KEYED)
    world.state.records.remove(first.task_id)

    results = await asyncio.gather(*[world.tasks.submit(KEYED) for _ in range(2)], return_exceptions=True)

    assert 1 == len([one for one in results if isinstance(one, Submitted)])
    assert 1 == len([one for one in results if isinstance(one, IdempotencyInProgress)])


async def test_a_full_queue_refuses(world: World) -> None:
    world.limit(BrokerLimits(queue_depth=1, scheduled=1, queues=2))
    await world.tasks.submit(FIELDS)
    await world.tasks.submit({**FIELDS, "queue": "later", "delay_seconds": 1})

    for fields, reason in (
        ({}, "queue_full"),
        ({"queue": "later", "delay_seconds": 1}, "schedule_full"),
        ({"queue": "third"}, "too_many_queues"),
    ):
        with pytest.raises(QueueFull) as raised:
            await world.tasks.submit({**FIELDS, **fields})
        assert reason == raised.value.reason


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("fields", [FIELDS, KEYED])
async def test_a_lost_reply_makes_no_second_task(world: World, loss: Loss, fields: dict[str, object]) -> None:
    world.link.lose("create", loss, times=2)
    submitting = asyncio.ensure_future(world.tasks.submit(fields))

    await world.advance(1)

    submitted = await submitting
    assert (1, False) == (await depth(world), submitted.duplicate)
    assert [S.QUEUED] == world.notes.steps(submitted.task_id)


async def test_a_lost_reply_is_a_success_even_when_the_queue_is_full_now(world: World) -> None:
    world.limit(BrokerLimits(queue_depth=1))
    world.link.lose("create", Loss.AFTER)
    submitting = asyncio.ensure_future(world.tasks.submit(FIELDS))

    await world.advance(1)

    assert not (await submitting).duplicate


async def test_an_outage_is_answered_within_four_seconds(world: World) -> None:
    world.link.is_down = True
    submitting = asyncio.ensure_future(world.tasks.submit(FIELDS))

    await world.advance(4)

    assert isinstance(submitting.exception(), BrokerUnavailable)
    assert not isinstance(submitting.exception(), OutcomeUnknown)


async def test_a_submission_that_may_have_been_made_is_answered_as_unknown(world: World) -> None:
    world.link.lose("create", Loss.AFTER)
    world.link.lose("create", Loss.BEFORE, times=10)
    submitting = asyncio.ensure_future(world.tasks.submit(FIELDS))

    await world.advance(4)

    assert isinstance(submitting.exception(), OutcomeUnknown)


async def test_a_silent_broker_is_answered_for_within_four_seconds(world: World) -> None:
    world.link.stall("create")
    submitting = asyncio.ensure_future(world.tasks.submit(FIELDS))

    await world.advance(4.1)

    assert isinstance(submitting.exception(), OutcomeUnknown)
    world.link.go_on()
    await world.settle()


async def test_what_waits_behind_a_silent_broker_goes_with_its_caller_and_is_never_made(world: World) -> None:
    world.link.stall("create")
    sent = asyncio.ensure_future(world.tasks.submit(FIELDS))
    await world.settle()
    unsent = [asyncio.ensure_future(world.tasks.submit(FIELDS)) for _ in range(500)]
    await world.advance(3)
    alive = asyncio.ensure_future(world.tasks.submit(FIELDS))

    await world.advance(1.1)

    assert isinstance(sent.exception(), OutcomeUnknown)
    assert {BrokerUnavailable} == {type(submitting.exception()) for submitting in unsent}
    assert not alive.done()
    world.link.go_on()
    await world.settle()
    assert isinstance(alive.result(), Submitted)
    assert 2 == world.link.calls["create"]
    assert 2 == await depth(world)


async def test_more_than_may_wait_for_a_slow_broker_is_refused_at_once(world: World) -> None:
    world.link.stall("create")
    sent = asyncio.ensure_future(world.tasks.submit(FIELDS))
    await world.settle()
    large = {**FIELDS, "payload": json.dumps({"text": "x" * 200_000})}
    room = MAX_WAITING_BYTES // (200_000 + RECORD_BYTES)
    submitting = [asyncio.ensure_future(world.tasks.submit(large)) for _ in range(room + 5)]

    await world.settle()

    refused = [one for one in submitting if one.done()]
    assert 5 <= len(refused) < 10
    assert {BrokerBehind} == {type(one.exception()) for one in refused}
    world.link.go_on()
    await asyncio.gather(sent, *submitting, return_exceptions=True)
    assert 1 + len(submitting) - len(refused) == await depth(world)


async def test_a_full_memory_refuses_new_work(world: World) -> None:
    world.state.faults.memory_is_full = True

    with pytest.raises(BrokerOutOfMemory):
        await world.tasks.submit(FIELDS)


async def test_a_creation_that_stops_half_way_is_repeated(world: World) -> None:
    world.state.faults.writes_left = 1

    submitted = await world.tasks.submit(KEYED)

    assert S.QUEUED == await world.status(submitted.task_id)


async def test_a_creation_that_stopped_half_way_and_cannot_be_repeated_is_unknown(world: World) -> None:
    world.state.faults.writes_left = 1
    world.link.watch(
        "create", lambda: world.link.lose("create", Loss.BEFORE) if world.link.calls["create"] > 1 else None
    )
    submitting = asyncio.ensure_future(world.tasks.submit(FIELDS))

    await world.advance(4)

    assert isinstance(submitting.exception(), OutcomeUnknown)


async def test_concurrent_submissions_share_requests(world: World) -> None:
    await asyncio.gather(*[world.tasks.submit(FIELDS) for _ in range(250)])

    assert 3 == world.link.calls["create"]
    assert 250 == await depth(world)


async def test_many_submissions_are_answered_one_by_one(world: World) -> None:
    answers = await world.tasks.submit_many([FIELDS, {**FIELDS, "priority": -1}, KEYED, KEYED])

    assert [Submitted, InvalidTask, Submitted, IdempotencyInProgress] == [type(answer) for answer in answers]


@pytest.mark.parametrize("count", [0, MAX_SUBMISSIONS + 1])
async def test_too_many_submissions_are_refused_as_a_whole(world: World, count: int) -> None:
    with pytest.raises(InvalidRequest, match=r"submissions: must be 1\.\.1000 tasks"):
        await world.tasks.submit_many([FIELDS] * count)


async def test_a_cancelled_tasks_key_answers_with_it(world: World) -> None:
    first = await world.tasks.submit(KEYED)
    await world.tasks.cancel(first.task_id, by=OPERATOR)

    assert (await world.tasks.submit(KEYED)).duplicate
