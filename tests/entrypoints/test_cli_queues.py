"""Queues, workers and the audit trail at the command line."""

import asyncio
import json
import sys
from datetime import timedelta

import pytest

from dtq.domain.outcome import classify
from dtq.domain.task import QueueName, WorkerId
from dtq.domain.workers import Heartbeat, WorkerStatus
from dtq.entrypoints.cli import main
from dtq.ports.backend import Backend
from tests.entrypoints.command_fixtures import backend, printed
from tests.entrypoints.commands import Printed, Terminal, document, end, submitted
from tests.entrypoints.driver import start_next
from tests.factories import an_audit_entry

__all__ = ["backend", "printed"]

AT_LIMIT = "dtq: the list ends at its limit of 1, and there may be more; --limit N shows up to 500"


def test_queues_are_listed_with_their_figures(printed: Printed) -> None:
    for queue in ("mail", "mail", "audio"):
        submitted(printed, "--queue", queue)
    main(["queue", "pause", "audio"])
    printed()

    assert 0 == main(["queues"])

    heading, *lines = printed()[0].splitlines()
    assert ["queue", "depth", "pending", "paused", "retry_scheduled"] == heading.split()
    assert [["audio", "1", "0", "yes", "0"], ["mail", "2", "0", "no", "0"]] == [line.split() for line in lines]


def test_a_list_of_queues_is_one_document_for_programs(printed: Printed) -> None:
    submitted(printed, "--queue", "mail", "--delay-seconds", "9")

    assert 0 == main(["queues", "--json"])

    figures = {"depth": 0, "pending": 0, "paused": False, "retry_scheduled": 1}
    assert {"queues": [{"queue": "mail", **figures}]} == document(printed)


def test_the_figures_of_one_queue(printed: Printed) -> None:
    submitted(printed)

    assert 0 == main(["queue", "stats"])

    rows = dict(line.rsplit(maxsplit=1) for line in printed()[0].splitlines())
    names = ("queue", "depth", "dead letters (all queues)", "workers_active")
    assert ("default", "1", "0", "0") == tuple(rows[name] for name in names)
    assert "dlq_depth" not in rows


@pytest.mark.parametrize(("number", "words"), [(1, "1 dead letter"), (2, "2 dead letters")])
def test_the_list_of_queues_ends_with_dead_letters_where_there_are_some(
    number: int, words: str, backend: Backend, printed: Printed
) -> None:
    for _ in range(number):
        submitted(printed)
        end(backend, classify(ValueError("why"), retryable=()))

    assert 0 == main(["queues"])

    assert f"{words}: dtq dlq list" == printed()[0].splitlines()[-1]


def test_a_queue_that_nobody_knows_has_no_figures(printed: Printed) -> None:
    assert 3 == main(["queue", "stats", "mail", "--json"])

    assert "QUEUE_NOT_FOUND" == json.loads(printed()[1])["code"]


def test_pause_and_resume_say_so_and_are_audited(printed: Printed) -> None:
    assert 0 == main(["queue", "pause", "mail"])
    assert ("mail paused\n", "dtq: queue mail has no tasks and no worker\n") == printed()
    assert 0 == main(["queue", "resume", "mail", "--json"])
    assert {"queue": "mail", "paused": False} == document(printed)

    assert 0 == main(["audit", "--json"])

    entries = document(printed)["entries"]
    done = [(entry["action"], entry["queue"], entry["outcome"]) for entry in entries]
    assert [("queue.resume", "mail", "done"), ("queue.pause", "mail", "done")] == done
    assert all(entry["actor"].startswith("cli:") and entry["request_id"] for entry in entries)


@pytest.mark.parametrize("command", [["queue", "pause"], ["queue", "resume"], ["queue", "stats"], ["purge", "--yes"]])
def test_the_name_of_a_queue_is_checked(command: list[str], printed: Printed) -> None:
    name = ["--queue", "Mail!"] if command[0] == "purge" else ["Mail!"]

    assert 2 == main([*command, *name])

    assert "dtq: queue: must be text of the form" in printed()[1]


def test_a_purge_cancels_what_waits(backend: Backend, printed: Printed) -> None:
    async def start() -> None:
        await start_next(backend, queue="mail")

    running, *waiting = [submitted(printed, "--queue", "mail") for _ in range(3)]
    asyncio.run(start())

    assert 0 == main(["purge", "--queue", "mail", "--yes", "--json"])

    assert {"queue": "mail", "purged": 2} == document(printed)
    main(["list", "--json"])
    statuses = {task["task_id"]: task["status"] for task in document(printed)["tasks"]}
    assert {running: "running", **dict.fromkeys(waiting, "cancelled")} == statuses
    main(["audit", "--json"])
    [entry] = document(printed)["entries"]
    assert ("queue.purge", "mail", 2, "done") == tuple(entry[name] for name in ("action", "queue", "count", "outcome"))


def test_a_purge_asks_nobody_where_nobody_is(printed: Printed) -> None:
    task_id = submitted(printed)

    assert 2 == main(["purge", "--queue", "default"])

    assert "say --yes" in printed()[1]
    main(["get", task_id, "--json"])
    assert "queued" == document(printed)["status"]


@pytest.mark.parametrize(("answer", "ended", "status"), [("y\n", 0, "cancelled"), ("no\n", 2, "queued")])
def test_at_a_terminal_a_purge_asks(
    answer: str, ended: int, status: str, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = submitted(printed, "--queue", "mail")
    monkeypatch.setattr(sys, "stdin", Terminal(answer))

    assert ended == main(["purge", "--queue", "mail"])

    assert "cancel all tasks that wait in queue mail (1)? [y/N]" in printed()[1]
    main(["get", task_id, "--json"])
    assert status == document(printed)["status"]


def test_workers_are_listed_with_what_they_last_said(backend: Backend, printed: Printed) -> None:
    _announce(backend, WorkerStatus.BUSY, active_tasks=2)

    assert 0 == main(["workers"])

    heading, line = printed()[0].splitlines()
    assert ["worker", "status", "queue", "active", "processed", "failed", "retried"] == heading.split()[:7]
    assert ["worker-00000001", "busy", "mail", "2/4", "0", "0", "0", "host-1"] == line.split()[:8]
    assert heading.endswith("task types")
    assert line.endswith("Z  echo, greet")


def test_a_worker_that_knows_many_task_types_is_listed_with_a_few(backend: Backend, printed: Printed) -> None:
    _announce(backend, WorkerStatus.BUSY, task_types=tuple(f"send_order_{number}" for number in range(9)))

    assert 0 == main(["workers"])

    assert printed()[0].endswith("  send_order_0, send_order_1, send_order_2, send_order_3, +5\n")


@pytest.mark.parametrize(
    "command", [["queue", "pause", "typo"], ["queue", "resume", "typo"], ["purge", "--queue", "typo", "--yes"]]
)
def test_an_act_on_a_queue_that_nobody_uses_says_so(command: list[str], printed: Printed) -> None:
    assert 0 == main(command)

    assert "dtq: queue typo has no tasks and no worker\n" == printed()[1]


@pytest.mark.parametrize(
    "command", [["queue", "pause", "mail"], ["queue", "resume", "mail"], ["purge", "--queue", "mail", "--yes"]]
)
@pytest.mark.parametrize("used_by", ["a worker", "a task that waits", "a task that is delayed"])
def test_an_act_on_a_queue_that_somebody_uses_says_nothing_of_it(
    used_by: str, command: list[str], backend: Backend, printed: Printed
) -> None:
    match used_by:
        case "a worker":
            _announce(backend, WorkerStatus.READY)
        case "a task that waits":
            submitted(printed, "--queue", "mail")
        case _:
            submitted(printed, "--queue", "mail", "--delay-seconds", "60")

    assert 0 == main(command)

    assert "" == printed()[1]


def test_workers_are_one_document_for_programs(backend: Backend, printed: Printed) -> None:
    _announce(backend, WorkerStatus.READY)

    assert 0 == main(["workers", "--json"])

    [worker] = document(printed)["workers"]
    assert ("worker-00000001", "ready", 4) == tuple(worker[name] for name in ("worker_id", "status", "concurrency"))


def test_the_audit_shows_who_did_what_in_which_request(printed: Printed) -> None:
    task_id = submitted(printed)
    main(["cancel", task_id])
    main(["cancel", task_id])
    printed()

    assert 0 == main(["audit", "--limit", "2"])

    heading, refused, done = printed()[0].splitlines()
    assert ["time", "actor", "action", "of", "count", "outcome", "request"] == heading.split()
    assert ["task.cancel", task_id, "TASK_TERMINAL"] == refused.split()[3:6]
    assert ["task.cancel", task_id, "done"] == done.split()[3:6]


def test_the_audit_shows_what_was_repaired(backend: Backend, printed: Printed) -> None:
    for names in ({"queue": QueueName("mail"), "subject": "mail p5 1-0"}, {"subject": "dtq:lock"}):
        asyncio.run(backend.audit.record(an_audit_entry(**{"queue": None, **names})))

    assert 0 == main(["audit"])

    of = [" ".join(line.split()[4:-2]) for line in printed()[0].splitlines()[1:]]
    assert ["dtq:lock", "mail mail p5 1-0"] == of


@pytest.mark.parametrize(
    ("command", "line"), [("queues", "no queues"), ("workers", "no workers"), ("audit", "nothing yet")]
)
def test_an_empty_list_says_so(command: str, line: str, printed: Printed) -> None:
    assert 0 == main([command])

    assert f"{line}\n" == printed()[0]


@pytest.mark.parametrize(("limit", "told"), [(1, f"{AT_LIMIT}\n"), (2, "")])
@pytest.mark.parametrize("command", ["queues", "workers"])
def test_a_list_that_may_not_be_whole_says_so(
    command: str, limit: int, told: str, backend: Backend, printed: Printed
) -> None:
    _announce(backend, WorkerStatus.READY)
    submitted(printed, "--queue", "mail")

    assert 0 == main([command, "--limit", str(limit)])

    assert told == printed()[1]


@pytest.mark.parametrize("command", [["queues"], ["workers"], ["audit"], ["dlq", "list"], ["list"]])
@pytest.mark.parametrize("limit", ["0", "501"])
def test_the_length_of_a_list_is_checked(command: list[str], limit: str, printed: Printed) -> None:
    assert 2 == main([*command, "--limit", limit])

    assert "limit: must be an integer within 1..500" in printed()[1]


def _announce(
    backend: Backend, status: WorkerStatus, *, active_tasks: int = 0, task_types: tuple[str, ...] = ("echo", "greet")
) -> None:
    now = backend.clock.now()
    beat = Heartbeat(
        worker_id=WorkerId("worker-00000001"),
        hostname="host-1",
        started_at=now,
        last_heartbeat=now,
        queue=QueueName("mail"),
        concurrency=4,
        status=status,
        active_tasks=active_tasks,
        task_types=task_types,
    )

    async def register() -> None:
        await backend.workers.announce(beat, expires_in=timedelta(minutes=1))

    asyncio.run(register())
