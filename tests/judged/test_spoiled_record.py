"""A record that somebody spoiled costs its own task, and nobody else's: not what is due, not what is queued."""

import pytest

from tests.judged.sizes import QUICK
from tests.judged.system import System, a_task
from tests.judged.waiting import wait_until

BESIDE = 20
WITHIN_S = 20
SPOILED = {
    "history": '[{"x": ' + "[" * 100_000,
    "attempt": "-5",
    "max_attempts": "0",
    "discarded": "1",
    "status": "sleeping",
}


@pytest.mark.parametrize("field", SPOILED)
def test_tasks_beside_a_spoiled_one_all_finish(system: System, field: str) -> None:
    delayed = system.create(*[a_task("echo", delay_seconds=0.5) for _ in range(BESIDE + 1)])
    queued = system.create(*[a_task("echo") for _ in range(BESIDE + 1)])
    spoiled = {delayed[BESIDE // 2], queued[BESIDE // 2]}
    for task_id in spoiled:
        system.redis.hset(system.keys.task(task_id), field, SPOILED[field])

    worker = system.worker(QUICK)

    others = [task_id for task_id in (*delayed, *queued) if task_id not in spoiled]
    wait_until(lambda: system.count_ended(others) == 2 * BESIDE, within=WITHIN_S, what="all others end")
    wait_until(lambda: worker.log.count("records_unreadable") > 1, within=WITHIN_S, what="both are told of")
    assert "loop_failed" not in worker.log
    assert not spoiled & {mark.task_id for mark in system.journal.marks()}
