"""A machine that has no thread left for a sync handler: its attempt fails, and neither is lost nor made twice."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

import pytest

from dtq.application.execution import ExecutionRules, Executor
from dtq.domain.outcome import AttemptResult, Failed
from dtq.domain.status import TaskStatus
from dtq.handlers import Registry, TaskContext, task
from tests.application import handlers
from tests.application.stage import Hearing, TickingClock
from tests.application.world import World
from tests.factories import WORKER, a_task


def start_nothing(_: threading.Thread) -> NoReturn:
    raise RuntimeError("can't start new thread")


async def test_an_attempt_without_a_thread_fails_and_is_not_made_later(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[object] = []
    gate = threading.Event()

    @task("hold")
    def hold(payload: dict[str, object], _: TaskContext) -> None:
        begun.append(payload["name"])
        gate.wait()

    clock, pool = TickingClock(), ThreadPoolExecutor(max_workers=2)
    rules = ExecutionRules(worker_id=WORKER, result_max_bytes=8192, retryable=())
    executor, first, second = Executor(Registry.of(hold), clock=clock, pool=pool, rules=rules), Hearing(), Hearing()
    first.begin(executor, a_task(task_type="hold", payload='{"name": "first"}'))
    monkeypatch.setattr(threading.Thread, "start", start_nothing)

    second.begin(executor, a_task(task_type="hold", payload='{"name": "second"}'))

    assert second.ended.is_set()
    (outcome,) = second.outcomes
    assert isinstance(outcome, Failed)
    assert (AttemptResult.ERROR, "RuntimeError", True) == (
        outcome.kind,
        outcome.failure.error_class,
        outcome.failure.retryable,
    )
    gate.set()
    await first.ended.wait()
    # ends once the pool has made all that it has kept
    pool.shutdown()
    assert (["first"], 1) == (begun, len(second.outcomes))


@task("thread")
def quick(_: dict[str, object], __: TaskContext) -> str:
    return "done"


async def test_who_starts_beside_it_runs_all_the_same(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [await world.submit("thread"), await world.submit("note")]
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start_nothing)
        await world.hire(registry=Registry.of(quick, handlers.note), concurrency=2)
    await world.until(lambda: not world.staff[0].active)
    assert [TaskStatus.RETRYING, TaskStatus.SUCCEEDED] == [await world.status(one) for one in ids]

    await world.advance(5)
    await world.until(lambda: not world.staff[0].active)

    assert [TaskStatus.SUCCEEDED] * 2 == [await world.status(one) for one in ids]
