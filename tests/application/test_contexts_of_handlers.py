"""What a handler leaves in its context is gone with it, on the loop and in a thread."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar

import pytest

from dtq.application.execution import ExecutionRules, Executor
from dtq.domain.outcome import Succeeded
from dtq.handlers import Registry, TaskContext, task
from tests.application.stage import Hearing, TickingClock
from tests.factories import WORKER, a_task

LEFT: ContextVar[str] = ContextVar("left", default="nothing")


def found_and_replaced() -> str:
    found = LEFT.get()
    LEFT.set("something")
    return found


@task("leave")
async def leave(_: dict[str, object], __: TaskContext) -> str:
    return found_and_replaced()


@task("leave_in_thread")
def leave_in_thread(_: dict[str, object], __: TaskContext) -> str:
    return found_and_replaced()


@pytest.mark.parametrize("task_type", ["leave", "leave_in_thread"])
async def test_no_handler_finds_what_another_one_left_in_its_context(task_type: str) -> None:
    rules = ExecutionRules(worker_id=WORKER, result_max_bytes=8192, retryable=())
    with ThreadPoolExecutor(max_workers=1) as pool:
        executor = Executor(Registry.of(leave, leave_in_thread), clock=TickingClock(), pool=pool, rules=rules)
        found = []
        for _ in range(3):
            hearing = Hearing()
            hearing.begin(executor, a_task(task_type=task_type, payload="{}"))
            await asyncio.wait_for(hearing.ended.wait(), timeout=10)
            found += hearing.outcomes

    assert ['"nothing"'] * 3 == [one.result for one in found if isinstance(one, Succeeded)]
    assert "nothing" == LEFT.get()
