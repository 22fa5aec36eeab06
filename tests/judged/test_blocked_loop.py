"""Judged item 8: a handler that blocks the event loop keeps its task."""

import pytest

from dtq.domain.status import TaskStatus
from tests.judged.sizes import VISIBILITY_S
from tests.judged.system import System, a_task

BLOCKED_S = 3 * VISIBILITY_S


@pytest.mark.timeout(BLOCKED_S + 60)
def test_a_handler_that_blocks_the_loop_for_three_visibility_timeouts_runs_once(system: System) -> None:
    worker, peer = system.worker(), system.worker()

    timeout_ms = int((BLOCKED_S + 30) * 1000)
    (task_id,) = system.create(a_task("block_loop", payload={"seconds": BLOCKED_S}, timeout_ms=timeout_ms))
    ended = system.ended(task_id, within=BLOCKED_S + 20)

    assert (TaskStatus.SUCCEEDED, 1) == (ended.status, ended.attempt)
    assert [1] == system.journal.starts(task_id)
    assert worker.alive()
    assert peer.alive()
