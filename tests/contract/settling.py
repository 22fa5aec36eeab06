"""A small world that carries on until nothing moves: a leader, an operator's sweep and one worker, without a loop."""

from collections.abc import Collection
from datetime import timedelta
from typing import Final

from dtq.domain import lifecycle
from dtq.domain.change import Change
from dtq.domain.decision import Acknowledge, Drop
from dtq.domain.delivery import finish
from dtq.domain.entry import rebuild, usable_task_id
from dtq.domain.idempotency import InProgress, answer
from dtq.domain.status import Place
from dtq.domain.task import NO_VERSION, QueueName, Task, TaskId, place_of
from dtq.ports.answers import Applied
from dtq.ports.broker import Delivery
from tests.contract.harness import Harness
from tests.contract.steps import (
    POLICY,
    VISIBILITY,
    all_strays,
    claim_due,
    commit,
    decide_start,
    key_record,
    now,
    take,
)
from tests.factories import QUEUE, WORKER, a_success, a_token

_ROUNDS: Final = 6
_STEP: Final = timedelta(minutes=2)
"""Longer than any delay of these tests, than the visibility timeout and than a claim may be held."""


async def settle(harness: Harness, *, queue: QueueName = QUEUE) -> None:
    """Let time pass, and everybody do what there is to do, until nothing moves any more."""
    for _ in range(_ROUNDS):
        await harness.advance(_STEP)
        await _lead(harness)
        await _give_homes(harness)
        while await _work(harness, queue=queue):
            pass


async def _lead(harness: Harness) -> None:
    broker = harness.backend.broker
    moment = now(harness)
    await broker.return_stale(claimed_before=moment - timedelta(minutes=1), now=moment, limit=100)
    for one in await claim_due(harness):
        task = one if isinstance(one, Task) else None
        decision = None if task is None else lifecycle.promote(task, now=now(harness), token=a_token())
        if isinstance(decision, Change):
            await commit(harness, decision)
        else:
            task_id = task.task_id if task is not None else TaskId(str(one))
            await broker.forget(task_id, version=NO_VERSION if task is None else task.version)


async def _give_homes(harness: Harness) -> None:
    for stray in await all_strays(harness):
        decision = lifecycle.rehome(stray, now=now(harness), token=a_token())
        assert isinstance(decision, Change)
        await commit(harness, decision)


async def _work(harness: Harness, *, queue: QueueName) -> int:
    deliveries = await take(harness, queue=queue, reap_idle=VISIBILITY)
    for delivery in deliveries:
        await _serve(harness, delivery)
    return len(deliveries)


async def _serve(harness: Harness, delivery: Delivery) -> None:
    broker = harness.backend.broker
    if usable_task_id(delivery.fields) is None:
        await broker.bury(delivery, worker=WORKER, at=now(harness))
        return
    task = delivery.task or rebuild(delivery.fields, receipt=delivery.receipt)
    assert task is not None
    decision = decide_start(harness, delivery, task=task)
    match decision:
        case Acknowledge(absorbed=absorbed):
            await broker.acknowledge(delivery, worker=WORKER, absorbed=absorbed, token=a_token())
        case Drop():
            pass
        case Change():
            answer = await commit(harness, decision)
            if isinstance(answer, Applied):
                await _finish(harness, answer.task)


async def _finish(harness: Harness, task: Task) -> None:
    if task.lease is None:
        return
    moment, token = now(harness), a_token()
    change = finish(task, lease=task.lease, outcome=a_success(), now=moment, token=token, policy=POLICY, jitter=0)
    assert isinstance(change, Change)
    assert isinstance(await commit(harness, change), Applied)


async def assert_settled(
    harness: Harness, task_ids: Collection[TaskId], *, key: str | None = None, letters_were_lost: bool = False
) -> None:
    """Nothing is lost and nothing is left: each task that is stored has ended, and only a dead letter has a place."""
    census = await harness.census()
    for task_id in task_ids:
        task = await harness.backend.broker.load(task_id)
        assert not any(task_id in census[place] for place in (Place.SCHEDULE, Place.READY, Place.HELD))
        if task is None:
            continue
        assert task.is_terminal, task
        letter = await harness.backend.dead_letters.get(task_id)
        assert letter is None or place_of(task) is Place.DEAD
        assert letter is not None or place_of(task) is not Place.DEAD or letters_were_lost
    record = None if key is None else await key_record(harness, key)
    if record is not None:
        task = await harness.backend.broker.load(record.task_id)
        # a change that stopped half-way may leave the record behind its task, which then counts
        assert not isinstance(answer(record, task=task), InProgress)
