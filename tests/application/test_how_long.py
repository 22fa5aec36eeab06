"""How long a handler is said to have run."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from dtq.application.execution import ExecutionRules, Executor
from dtq.domain.outcome import Succeeded
from dtq.handlers import Registry, TaskContext, task
from tests.application.stage import Hearing, TickingClock
from tests.factories import WORKER, a_task


@pytest.mark.parametrize("task_type", ["take_a_second", "take_a_second_in_a_thread"])
async def test_a_success_tells_how_long_its_handler_ran(task_type: str) -> None:
    clock, pool, hearing = TickingClock(), ThreadPoolExecutor(max_workers=1), Hearing()
    loop, second = asyncio.get_running_loop(), timedelta(seconds=1)

    @task("take_a_second")
    async def take_a_second(_: dict[str, object], __: TaskContext) -> None:
        await clock.advance(second)

    @task("take_a_second_in_a_thread")
    def take_a_second_in_a_thread(_: dict[str, object], __: TaskContext) -> None:
        asyncio.run_coroutine_threadsafe(clock.advance(second), loop).result()

    rules = ExecutionRules(worker_id=WORKER, result_max_bytes=8192, retryable=())
    registry = Registry([*Registry.of(take_a_second), *Registry.of(take_a_second_in_a_thread)])
    executor = Executor(registry, clock=clock, pool=pool, rules=rules)

    await clock.advance(second)
    hearing.begin(executor, a_task(task_type=task_type))
    await hearing.ended.wait()

    assert [Succeeded(result="null", ran=second)] == hearing.outcomes
    pool.shutdown()
