"""An attempt that was given up has its outcome: what its handler still does is told to nobody."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from dtq.adapters.memory.clock import settle
from dtq.application.execution import SWALLOW_GRACE, ExecutionRules, Executor, StopReason
from dtq.handlers import Registry, TaskContext, task
from tests.application.stage import Hearing, TickingClock
from tests.factories import WORKER, a_task


@pytest.mark.parametrize("reason", StopReason)
async def test_a_handler_that_ends_after_it_was_given_up_is_told_of_once(reason: StopReason) -> None:
    gate = asyncio.Event()

    @task("stubborn")
    async def stubborn(_: dict[str, object], __: TaskContext) -> None:
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue

    clock, pool = TickingClock(), ThreadPoolExecutor(max_workers=1)
    rules = ExecutionRules(worker_id=WORKER, result_max_bytes=8192, retryable=())
    executor, hearing = Executor(Registry.of(stubborn), clock=clock, pool=pool, rules=rules), Hearing()
    attempt = hearing.begin(executor, a_task(task_type="stubborn"))
    await settle()
    attempt.stop(reason)
    await clock.advance(SWALLOW_GRACE)
    assert (True, False, 1) == (attempt.is_decided, hearing.ended.is_set(), len(hearing.outcomes))

    gate.set()
    await settle()

    assert (True, 1) == (hearing.ended.is_set(), len(hearing.outcomes))
    pool.shutdown()
