"""Judged item 11: of two workers that hold one entry, one runs it, whichever wakes first.

The first worker reads the entry and stalls before its start: the line to Redis holds back what it says, either from
the moment the entry was read on waking, or once its task has been looked at too. The second reclaims the entry.
"""

from collections.abc import Mapping

import pytest

from dtq.domain.status import TaskStatus
from dtq.domain.task import TaskId
from tests.judged.sizes import QUICK
from tests.judged.system import System, Worker, a_gated_task
from tests.judged.waiting import wait_until
from tests.servers.proxy import Proxy, Then, Trap

WORD = "the-one-entry"
PLAIN: Mapping[str, object] = {}
KEYED: Mapping[str, object] = {"idempotency_key": "a-key"}
"""What a task has that no worker starts before it has looked at it (ADR 104)."""

READINGS = pytest.mark.parametrize("readings", [1, 2], ids=["read", "read and looked at"])


def stalls(line: Proxy, *, times: int = 1) -> Trap:
    """Hold back what a worker says, once it has been told of the entry for the *times*-th time."""
    return line.trap(WORD.encode(), in_reply=True, times=times, then=Then.STALL)


def stalled_first(
    system: System, line: Proxy, *, readings: int, fields: Mapping[str, object] = KEYED
) -> tuple[Worker, TaskId]:
    """A worker that has read the entry and says nothing more, and the task of that entry."""
    stalled = stalls(line, times=readings)
    first = system.worker(QUICK | {"DTQ_REDIS_URL": line.url}, concurrency=1)
    # so that it reads the entry on waking, and looks at its task in a second step
    wait_until(lambda: blocked_reads(system) == 1, within=10, what="the first worker waits for work")
    (task_id,) = system.create({**a_gated_task(WORD), **fields})
    stalled.wait(10)
    assert [] == system.journal.starts(task_id)
    return first, task_id


def blocked_reads(system: System) -> int:
    """How many workers wait in Redis for an entry."""
    return sum("b" in client["flags"] for client in system.redis.client_list() if client["cmd"] == "xreadgroup")


def see_it_take(system: System, worker: Worker) -> None:
    """Wait until *worker*, the only one with a free slot, has gone on to new work."""
    (probe,) = system.create(a_gated_task("probe"))
    system.started(probe)
    assert worker.worker_id == system.journal.of(probe)[0].worker_id


def see_it_run_once(system: System, task_id: TaskId, *, by: Worker) -> None:
    """Let the task end, and see that it was started once, as its first attempt."""
    system.open_gate(WORD)
    ended = system.ended(task_id)
    assert (TaskStatus.SUCCEEDED, 1, by.worker_id) == (ended.status, ended.attempt, ended.worker_id)
    assert [1] == system.journal.starts(task_id)


@pytest.mark.parametrize(
    ("readings", "fields"),
    [(1, PLAIN), (1, KEYED), (2, KEYED)],
    ids=["read, and started by the next reading", "read", "read and looked at"],
)
def test_the_second_holder_wakes_first_and_runs_it(system: System, readings: int, fields: Mapping[str, object]) -> None:
    with Proxy(system.server.url) as line:
        first, task_id = stalled_first(system, line, readings=readings, fields=fields)
        second = system.worker(QUICK, concurrency=1)
        system.started(task_id)

        line.heal()
        see_it_take(system, first)

        see_it_run_once(system, task_id, by=second)


@READINGS
def test_the_first_holder_wakes_first_and_drops_it(system: System, readings: int) -> None:
    with Proxy(system.server.url) as line, Proxy(system.server.url) as other_line:
        first, task_id = stalled_first(system, line, readings=readings)
        stalled = stalls(other_line)
        second = system.worker(QUICK | {"DTQ_REDIS_URL": other_line.url}, concurrency=1)
        stalled.wait(10)  # it has reclaimed the entry
        # what it asked for before the line fell silent could still give it the next entry
        wait_until(lambda: blocked_reads(system) == 0, within=2, what="nobody waits for work")

        line.heal()
        see_it_take(system, first)
        assert [] == system.journal.starts(task_id)
        other_line.heal()

        system.started(task_id)
        see_it_run_once(system, task_id, by=second)
