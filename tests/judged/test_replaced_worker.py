"""Two workers of one id: the one that stood still until the other had begun ends, and takes nothing from it."""

import pytest

from dtq.domain.status import TaskStatus
from tests.judged.sizes import QUICK
from tests.judged.system import System, a_gated_task
from tests.judged.waiting import wait_until

LIFETIME_S = 3 * 0.5
UNUSABLE = 2

pytestmark = pytest.mark.timeout(120)


def test_a_worker_that_wakes_after_its_successor_has_begun_ends_and_costs_no_attempt(system: System) -> None:
    first = system.worker(QUICK)
    own_id = {"DTQ_WORKER_ID": first.worker_id}
    first.freeze()
    wait_until(lambda: system.status_of(first) is None, within=LIFETIME_S + 10, what="its sign of life expires")
    second = system.worker(QUICK | own_id, ready=False)
    wait_until(lambda: system.status_of(first) in {"ready", "busy"}, within=20, what="the successor is ready")
    tasks = system.create(*[a_gated_task("held")] * 4)
    for task_id in tasks:
        system.started(task_id)

    first.thaw()

    assert UNUSABLE == first.exit_code(within=10)
    assert "worker_replaced" in first.log
    assert second.alive()
    system.open_gate("held")
    for task_id in tasks:
        task = system.ended(task_id)
        assert (TaskStatus.SUCCEEDED, 1) == (task.status, task.attempt)
        assert [1] == system.journal.starts(task_id)
    assert system.status_of(first) in {"ready", "busy"}
