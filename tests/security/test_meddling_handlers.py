"""The handlers' side: what a handler raises and returns that is easily mistaken, and what it does to what it shares."""

import json
import signal
from collections.abc import Iterator

import pytest

from tests.judged.system import System
from tests.judged.waiting import wait_until
from tests.security import meddling
from tests.security.site import WITHIN_S, Site, standing
from tests.servers import RedisServer

SETTINGS = {"DTQ_TASK_MODULES": meddling.__name__}
KINDS = ("meddle", "meddle_sync")

ENDS = {
    "its own timeout": ("dead_lettered", "TimeoutError", 2),
    "a group": ("dead_lettered", "ExceptionGroup", 1),
    "a group to be tried again": ("dead_lettered", "ExceptionGroup", 2),
    "irreducible": ("dead_lettered", "Irreducible", 1),
    "nothing raised": ("dead_lettered", "TypeError", 1),
    "unwieldy": ("dead_lettered", "ResultNotSerializable", 1),
    "a coroutine": ("dead_lettered", "ResultNotSerializable", 1),
    "an async generator": ("dead_lettered", "ResultNotSerializable", 1),
    "folder": ("succeeded", None, 1),
    "locale": ("succeeded", None, 1),
    "environment": ("succeeded", None, 1),
}


@pytest.fixture(scope="module")
def shared(redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with standing(redis_server, folder=tmp_path_factory.mktemp("shared"), settings=SETTINGS) as site:
        yield site


@pytest.mark.parametrize("task_type", KINDS)
@pytest.mark.parametrize("deed", ENDS)
def test_each_deed_ends_its_task_as_documented_and_the_worker_lives(shared: Site, deed: str, task_type: str) -> None:
    task = shared.run(task_type, json.dumps({"deed": deed}), max_attempts=2)

    assert ENDS[deed] == (task["status"], task["error_class"], task["attempt"])
    shared.see_work_goes_on()


@pytest.mark.parametrize("task_type", KINDS)
def test_what_a_handler_leaves_in_a_context_reaches_no_other(shared: Site, task_type: str) -> None:
    # more than there are slots, so that each thread is used again
    found = [shared.run(task_type, '{"deed": "left behind"}')["result"] for _ in range(9)]

    assert ["nothing"] * 9 == found


CHILDREN = {"an ended child": "ended by 15", "a working child": "ended with 0", "a pool of children": [1, 2]}


@pytest.mark.parametrize("task_type", KINDS)
@pytest.mark.parametrize("deed", CHILDREN)
def test_what_becomes_of_a_child_that_a_handler_forks_is_its_own_affair(
    shared: Site, deed: str, task_type: str
) -> None:
    task = shared.run(task_type, json.dumps({"deed": deed}), max_attempts=1)

    assert ("succeeded", CHILDREN[deed]) == (task["status"], task["result"])
    # a worker that drains would take nothing more
    shared.see_work_goes_on()
    shared.see_work_goes_on()


def test_a_loop_that_a_handler_stops_goes_on(shared: Site) -> None:
    task = shared.run("meddle", '{"deed": "stopped loop"}', max_attempts=1)

    assert ("succeeded", "done") == (task["status"], task["result"])
    shared.see_work_goes_on()


def test_a_loop_of_its_own_is_for_sync_handlers(shared: Site) -> None:
    of_async, of_sync = [shared.run(name, '{"deed": "a loop of its own"}', max_attempts=2) for name in KINDS]

    assert ("dead_lettered", "RuntimeError") == (of_async["status"], of_async["error_class"])
    assert ("succeeded", "awaited") == (of_sync["status"], of_sync["result"])
    shared.see_work_goes_on()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("task_type", ["signal", "signal_sync"])
def test_a_handler_that_asks_its_worker_to_stop_ends_first(
    system: System, task_type: str, number: signal.Signals
) -> None:
    worker = system.worker(SETTINGS, concurrency=1)
    site = Site(system=system, api=system.api(SETTINGS), worker=worker)

    task = site.run(task_type, json.dumps({"number": int(number)}), max_attempts=1)

    assert ("succeeded", "done") == (task["status"], task["result"])
    assert 0 == worker.exit_code(within=WITHIN_S)


# not SIGHUP, which whoever begins the tests may have them ignore
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGUSR1])
@pytest.mark.parametrize("task_type", ["signal", "signal_sync"])
def test_a_signal_that_ends_the_process_costs_the_attempt_and_no_other_task(
    system: System, task_type: str, number: signal.Signals
) -> None:
    first, second = system.worker(SETTINGS, concurrency=1), system.worker(SETTINGS, concurrency=1)
    site = Site(system=system, api=system.api(SETTINGS), worker=second)

    task_id = site.submitted(task_type, json.dumps({"number": int(number)}), max_attempts=1)
    wait_until(lambda: first.alive() != second.alive(), within=WITHIN_S, what="one worker has ended")
    dead, alive = (first, second) if second.alive() else (second, first)
    task = site.shown(task_id)

    assert -number == dead.exit_code(within=1)
    assert ("dead_lettered", "WorkerLost", 1) == (task["status"], task["error_class"], task["attempt"])
    Site(system=system, api=site.api, worker=alive).see_work_goes_on()
