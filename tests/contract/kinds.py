"""Every kind of change there is, ready to be made: for tests that hold for all of them."""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from dtq.domain import lifecycle
from dtq.domain.change import Change
from dtq.domain.entry import rebuild
from dtq.domain.outcome import Outcome
from dtq.domain.status import TaskStatus
from dtq.domain.task import Task
from tests.contract.harness import Harness
from tests.contract.steps import (
    NO_DEAD_LETTERS,
    POLICY,
    bring_to,
    cancel,
    claim,
    decide_finish,
    decide_start,
    now,
    reap_one,
    run,
    seconds,
    submit,
    take_one,
)
from tests.factories import OPERATOR, WORKER, a_fault, a_success, a_token, an_admission

Kind = Callable[[Harness, str], Awaitable[object]]
S = TaskStatus


async def _submit(harness: Harness, key: str) -> object:
    return an_admission(now=now(harness), idempotency_key=key).change


async def _submit_delayed(harness: Harness, key: str) -> object:
    return an_admission(now=now(harness), idempotency_key=key, delay=seconds(60)).change


async def _start(harness: Harness, key: str) -> object:
    return decide_start(harness, await take_one(harness, await submit(harness, idempotency_key=key)))


async def _start_rebuilt(harness: Harness, key: str) -> object:
    task = await submit(harness, idempotency_key=key)
    await harness.evict(task.task_id)
    delivery = await take_one(harness, task)
    return decide_start(harness, delivery, task=rebuild(delivery.fields, receipt=delivery.receipt))


async def _redeliver(harness: Harness, key: str) -> object:
    task = await run(harness, idempotency_key=key, worker=WORKER)
    return decide_start(harness, await reap_one(harness, task, worker=WORKER))


async def _give_up(harness: Harness, key: str) -> object:
    task = await run(harness, idempotency_key=key, max_attempts=1)
    return decide_start(harness, await reap_one(harness, task, worker=WORKER))


async def _give_up_without_dead_letters(harness: Harness, key: str) -> object:
    task = await run(harness, idempotency_key=key, max_attempts=1)
    return decide_start(harness, await reap_one(harness, task, worker=WORKER), policy=NO_DEAD_LETTERS)


async def _expire_at_start(harness: Harness, key: str) -> object:
    task = await submit(harness, idempotency_key=key, ttl=seconds(60))
    return decide_start(harness, await take_one(harness, task), at=task.ttl_at)


async def _expire_at_promotion(harness: Harness, key: str) -> object:
    task = await submit(harness, idempotency_key=key, ttl=seconds(60), delay=seconds(60))
    return lifecycle.promote(await claim(harness, task), now=now(harness), token=a_token())


async def _cancel_at_redelivery(harness: Harness, key: str) -> object:
    task = await cancel(harness, await run(harness, idempotency_key=key))
    return decide_start(harness, await reap_one(harness, task, worker=WORKER))


async def _finish_cancelled(harness: Harness, key: str) -> object:
    task = await cancel(harness, await run(harness, idempotency_key=key))
    return decide_finish(harness, task, a_success())


async def _purge(harness: Harness, key: str) -> object:
    task = await submit(harness, idempotency_key=key)
    return lifecycle.purge(task, now=now(harness), token=a_token())


async def _requeue(harness: Harness, key: str) -> object:
    task = await bring_to(harness, S.DEAD_LETTERED, idempotency_key=key)
    return lifecycle.requeue(task, now=now(harness), token=a_token(), by=OPERATOR)


async def _requeue_rebuilt(harness: Harness, key: str) -> object:
    task = await bring_to(harness, S.DEAD_LETTERED, idempotency_key=key)
    await harness.evict(task.task_id)
    letter = await harness.backend.dead_letters.get(task.task_id)
    assert letter is not None
    assert letter.task is not None
    return lifecycle.requeue(letter.task, now=now(harness), token=a_token(), by=OPERATOR)


async def _discard(harness: Harness, key: str) -> object:
    task = await bring_to(harness, S.DEAD_LETTERED, idempotency_key=key)
    return lifecycle.discard(task, now=now(harness), token=a_token(), by=OPERATOR)


def _promote(status: TaskStatus) -> Kind:
    async def prepare(harness: Harness, key: str) -> object:
        task = await claim(harness, await bring_to(harness, status, idempotency_key=key))
        return lifecycle.promote(task, now=now(harness), token=a_token())

    return prepare


def _cancel(status: TaskStatus) -> Kind:
    async def prepare(harness: Harness, key: str) -> object:
        task = await bring_to(harness, status, idempotency_key=key)
        return lifecycle.cancel(task, now=now(harness), token=a_token(), by=OPERATOR)

    return prepare


def _finish(outcome: Outcome, *, dead_letters: bool = True) -> Kind:
    async def prepare(harness: Harness, key: str) -> object:
        task = await run(harness, idempotency_key=key)
        return decide_finish(harness, task, outcome, policy=replace(POLICY, dead_letters=dead_letters))

    return prepare


def _rehome(status: TaskStatus) -> Kind:
    async def prepare(harness: Harness, key: str) -> object:
        task = await bring_to(harness, status, idempotency_key=key)
        await harness.orphan(task.task_id)
        return lifecycle.rehome(task, now=now(harness), token=a_token())

    return prepare


KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "submit": _submit,
        "submit_delayed": _submit_delayed,
        "promote_pending": _promote(S.PENDING),
        "promote_retrying": _promote(S.RETRYING),
        "expire_at_promotion": _expire_at_promotion,
        "start": _start,
        "start_rebuilt": _start_rebuilt,
        "redeliver": _redeliver,
        "give_up": _give_up,
        "give_up_without_dead_letters": _give_up_without_dead_letters,
        "expire_at_start": _expire_at_start,
        "cancel_at_redelivery": _cancel_at_redelivery,
        "succeed": _finish(a_success()),
        "retry": _finish(a_fault()),
        "bury": _finish(a_fault(retryable=False)),
        "fail": _finish(a_fault(retryable=False), dead_letters=False),
        "finish_cancelled": _finish_cancelled,
        "cancel_pending": _cancel(S.PENDING),
        "cancel_queued": _cancel(S.QUEUED),
        "cancel_retrying": _cancel(S.RETRYING),
        "request_cancel": _cancel(S.RUNNING),
        "purge": _purge,
        "requeue": _requeue,
        "requeue_rebuilt": _requeue_rebuilt,
        "discard": _discard,
        "rehome_scheduled": _rehome(S.PENDING),
        "rehome_queued": _rehome(S.QUEUED),
        "rehome_running": _rehome(S.RUNNING),
    }
)
"""What each kind is called, and how it is prepared for a new task with the idempotency key that is given."""


async def prepared(harness: Harness, kind: str, *, key: str = "key") -> Change:
    """Lead a new task to where a change of this kind is the next one, and decide it."""
    change = await KINDS[kind](harness, key)
    assert isinstance(change, Change), change
    return change


def task_before(change: Change) -> Task:
    """Say which task a change starts from; one that begins here counts as it will be."""
    return change.before or change.after
