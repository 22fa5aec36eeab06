"""What has ended is gone at once: a worker that is busy leaves nothing to the garbage collector."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

from dtq.adapters.memory.clock import settle
from dtq.application.execution import Attempt, ExecutionRules, Executor
from dtq.domain.outcome import Outcome
from tests.application.handlers import REGISTRY
from tests.application.stage import TickingClock
from tests.factories import WORKER, a_task


class Holder:
    """Who holds an attempt, and is told of it."""

    attempt: Attempt

    def hear(self, outcome: Outcome | None = None) -> None:
        """Hear how it ended, or that it did."""


async def test_an_attempt_that_has_ended_leaves_nothing_to_the_garbage_collector() -> None:
    clock, pool = TickingClock(), ThreadPoolExecutor(max_workers=1)
    rules = ExecutionRules(worker_id=WORKER, result_max_bytes=8192, retryable=())
    executor, holder = Executor(REGISTRY, clock=clock, pool=pool, rules=rules), Holder()
    gone = weakref.ref(holder)
    gc.disable()
    try:
        holder.attempt = executor.begin(a_task(task_type="note"), on_decided=holder.hear, on_ended=holder.hear)
        await settle()
        assert holder.attempt.is_decided
        del holder
        assert gone() is None
    finally:
        gc.enable()
    pool.shutdown()
