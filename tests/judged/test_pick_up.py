"""Judged item 5: an idle worker begins at once, whatever the priority, and in strict order."""

import random
import statistics
import time

import pytest

from tests.judged.sizes import QUICK
from tests.judged.system import System, a_task
from tests.judged.systems import Record
from tests.judged.waiting import wait_until

SUBMISSIONS = 40
MEDIAN_LIMIT_S = 0.010
BATCHES = 5


@pytest.mark.parametrize("priority", [0, 9])
def test_an_idle_worker_begins_within_milliseconds(
    system: System, priority: int, record_testsuite_property: Record
) -> None:
    system.worker(QUICK)
    warm_up = system.create(a_task("echo", priority=priority))
    system.started(warm_up[0])

    waits = []
    for _ in range(SUBMISSIONS):
        submission = a_task("echo", priority=priority)
        asked_at = time.monotonic()
        (task_id,) = system.create(submission)
        system.started(task_id)
        waits.append(system.journal.of(task_id)[0].at - asked_at)
        system.ended(task_id)

    record_testsuite_property(f"median_s of priority {priority}", statistics.median(waits))
    assert statistics.median(waits) < MEDIAN_LIMIT_S, sorted(waits)


def test_a_batch_of_all_priorities_starts_in_strict_order(system: System) -> None:
    system.worker(QUICK, concurrency=1)

    orders = [order_of_starts(system, priorities=random.sample(range(10), 10)) for _ in range(BATCHES)]

    assert [list(range(9, -1, -1))] * BATCHES == orders


def order_of_starts(system: System, *, priorities: list[int]) -> list[int]:
    """Create a task of each priority in one batch; return the priorities in the order in which they started."""
    tasks = system.create(*[a_task("brief", priority=priority) for priority in priorities])
    wait_until(lambda: system.count_ended(tasks) == len(tasks), within=10, what="all tasks of the batch end")
    started_at = {
        priority: system.journal.of(task_id)[0].at for task_id, priority in zip(tasks, priorities, strict=True)
    }
    return sorted(priorities, key=lambda priority: started_at[priority])
