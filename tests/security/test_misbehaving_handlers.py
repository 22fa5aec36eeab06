"""The handlers' side: whatever a handler raises, returns or does, its task ends as documented and the worker lives.

In memory, on a clock moved by hand, the same is shown by tests/application/test_execution.py and test_timeouts.py.
"""

import json
import signal

import pytest

from tests.judged.system import System
from tests.judged.waiting import wait_until
from tests.security import handlers
from tests.security.site import WITHIN_S, Site

KEPT = {
    "set": [1],
    "bytes": "/w==",
    "moment": "2026-01-02T00:00:00Z",
    "nothing": None,
    "integer key": {"1": 2},
}
TOO_LARGE = {"ten megabytes", "many"}

NAMES = {
    "exit": ("SystemExit", "3"),
    "exit with text": ("SystemExit", "a reason"),
    "interrupt": ("KeyboardInterrupt", ""),
    "cancelled": ("CancelledError", "its own"),
    "generator": ("GeneratorExit", ""),
    "memory": ("MemoryError", ""),
    "recursion": ("RecursionError", ""),
    "stray": ("Stray", "astray"),
    "unprintable": ("Unprintable", "no message: __str__ raised SystemExit"),
    "group of exits": ("BaseExceptionGroup", "all (2 sub-exceptions)"),
    "forged": ("ValueError", "a  b  [31m  "),
    "huge": ("ValueError", "x" * 500),
    "strange name": ("a b<script>", "named"),
    "loop": ("InvalidStateError", "not now"),
}

DEEDS = {
    "recurse": ("dead_lettered", "RecursionError"),
    "cancel itself": ("dead_lettered", "CancelledError"),
    "exit beside": ("succeeded", None),
    "exit in a callback": ("succeeded", None),
    "exit in a thread": ("succeeded", None),
    "close the loop": ("dead_lettered", "RuntimeError"),
    "close the output": ("succeeded", None),
}


@pytest.mark.parametrize("task_type", ["raise", "raise_sync"])
@pytest.mark.parametrize("error", NAMES)
def test_whatever_is_raised_ends_the_task_for_good_and_the_worker_lives(site: Site, error: str, task_type: str) -> None:
    task = site.run(task_type, json.dumps({"error": error}), max_attempts=3)

    assert ("dead_lettered", 1) == (task["status"], task["attempt"])
    assert NAMES[error] == (task["error_class"], task["error_message"])
    site.see_work_goes_on()


def test_an_error_that_python_itself_replaces_ends_the_task_too(site: Site) -> None:
    assert "StopIteration" == site.run("raise_sync", '{"error": "iteration"}')["error_class"]
    assert "RuntimeError" == site.run("raise", '{"error": "iteration"}')["error_class"]
    site.see_work_goes_on()


@pytest.mark.parametrize("task_type", ["give", "give_sync"])
@pytest.mark.parametrize("value", handlers.RESULTS)
def test_whatever_is_returned_is_kept_dropped_or_refused(site: Site, value: str, task_type: str) -> None:
    task = site.run(task_type, json.dumps({"value": value}), max_attempts=3)

    assert 1 == task["attempt"]
    if value in KEPT:
        assert ("succeeded", KEPT[value], False) == (task["status"], task["result"], task["result_truncated"])
    elif value in TOO_LARGE:
        assert ("succeeded", None, True) == (task["status"], task["result"], task["result_truncated"])
    else:
        assert ("dead_lettered", "ResultNotSerializable") == (task["status"], task["error_class"])
    assert site.worker.alive()


@pytest.mark.parametrize("deed", DEEDS)
def test_whatever_is_done_to_loop_and_process_the_worker_goes_on(site: Site, deed: str) -> None:
    task = site.run("misbehave", json.dumps({"deed": deed}), max_attempts=1)

    assert DEEDS[deed] == (task["status"], task["error_class"])
    site.see_work_goes_on()


def test_recursion_without_end_in_a_thread_ends_its_task(site: Site) -> None:
    assert "RecursionError" == site.run("recurse_sync")["error_class"]
    site.see_work_goes_on()


def test_a_handler_that_swallows_every_cancellation_is_given_up(site: Site) -> None:
    task = site.run("misbehave", '{"deed": "swallow"}', timeout_ms=200, max_attempts=1)

    assert ("dead_lettered", "TimeoutError") == (task["status"], task["error_class"])
    site.see_work_goes_on()


def test_a_thread_that_never_ends_costs_a_slot_and_neither_the_worker_nor_its_end(system: System) -> None:
    worker = system.worker({"DTQ_TASK_MODULES": handlers.__name__, "DTQ_DRAIN_TIMEOUT_S": "1"}, concurrency=2)
    site = Site(system=system, api=system.api({"DTQ_TASK_MODULES": handlers.__name__}), worker=worker)

    task = site.run("hang", timeout_ms=200, max_attempts=1)
    site.see_work_goes_on()
    worker.terminate()

    assert ("dead_lettered", "TimeoutError") == (task["status"], task["error_class"])
    assert 0 == worker.exit_code(within=WITHIN_S)


@pytest.mark.parametrize(("task_type", "code"), [("leave", 0), ("fault", -signal.SIGSEGV)])
def test_a_handler_that_ends_the_process_costs_its_attempts_and_no_other_task(
    system: System, task_type: str, code: int
) -> None:
    settings = {"DTQ_TASK_MODULES": handlers.__name__}
    first, second = system.worker(settings, concurrency=1), system.worker(settings, concurrency=1)
    site = Site(system=system, api=system.api(settings), worker=second)

    task_id = site.submitted(task_type, json.dumps({"code": code}), max_attempts=1)
    wait_until(lambda: first.alive() != second.alive(), within=WITHIN_S, what="one worker has ended")
    dead, alive = (first, second) if second.alive() else (second, first)
    task = site.shown(task_id)

    assert code == dead.exit_code(within=1)
    assert ("dead_lettered", "WorkerLost", 1) == (task["status"], task["error_class"], task["attempt"])
    Site(system=system, api=site.api, worker=alive).see_work_goes_on()
