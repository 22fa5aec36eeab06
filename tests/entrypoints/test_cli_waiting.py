"""What is told when ``--wait`` comes to its limit."""

import asyncio

import pytest

from dtq.application.explaining import ExplanationService
from dtq.application.tasks import TaskService
from dtq.domain.errors import BrokerUnavailable, RecordUnreadable
from dtq.domain.outcome import classify
from dtq.entrypoints.cli import main
from dtq.ports.backend import Backend
from tests.entrypoints.command_fixtures import backend, printed
from tests.entrypoints.commands import Printed, end, submitted
from tests.entrypoints.driver import start_next

__all__ = ["backend", "printed"]


def told(printed: Printed, task_id: str) -> str:
    """What stands between the time that passed and where to look again."""
    printed()
    assert 9 == main(["get", task_id, "--wait", "0"])
    [line] = printed()[1].splitlines()
    before, after = "dtq: after 0 s the task is ", f"; it goes on without this command: dtq get {task_id} --wait"
    assert line.startswith(before)
    assert line.endswith(after)
    return line.removeprefix(before).removesuffix(after)


def test_a_task_whose_queue_nobody_serves(printed: Printed) -> None:
    task_id = submitted(printed)

    assert "queued: no live worker serves queue default, see `dtq workers`" == told(printed, task_id)


def test_a_task_whose_queue_is_paused(printed: Printed) -> None:
    task_id = submitted(printed)
    main(["queue", "pause", "default"])

    assert "queued: queue default is paused, `dtq queue resume default` ends that" == told(printed, task_id)


def test_a_task_that_is_delayed(printed: Printed) -> None:
    task_id = submitted(printed, "--delay-seconds", "60")

    assert told(printed, task_id).startswith("pending: it may start at 20")


def test_a_task_that_waits_for_its_retry(backend: Backend, printed: Printed) -> None:
    task_id = submitted(printed)
    end(backend, classify(TimeoutError("slow"), retryable=(TimeoutError,)))

    assert told(printed, task_id).startswith("retrying: it may start at 20")


def test_a_task_that_runs(backend: Backend, printed: Printed) -> None:
    async def start() -> None:
        await start_next(backend)

    task_id = submitted(printed)
    asyncio.run(start())

    assert told(printed, task_id).startswith("running: attempt 1 of 5 runs on worker-00000001 since 20")


def test_a_reason_that_cannot_be_found_out_is_left_out(printed: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    async def unavailable(*_: object) -> None:
        raise BrokerUnavailable("refused")

    task_id = submitted(printed)
    monkeypatch.setattr(ExplanationService, "explain", unavailable)

    assert "queued" == told(printed, task_id)


def test_no_record_that_cannot_be_read_is_waited_for(printed: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def unreadable(_: TaskService, task_id: str) -> None:
        asked.append(task_id)
        raise RecordUnreadable("it cannot be read")

    task_id = submitted(printed)
    monkeypatch.setattr(TaskService, "get", unreadable)

    assert 1 == main(["get", task_id, "--wait", "1"])

    assert [task_id] == asked
    assert ("", "dtq: it cannot be read; trying again does not help: see `dtq doctor`\n") == printed()


def test_of_a_task_that_was_never_seen_nobody_says_that_it_has_ended(
    printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unavailable(*_: object) -> None:
        raise BrokerUnavailable("refused")

    task_id = submitted(printed)
    monkeypatch.setattr(TaskService, "get", unavailable)

    assert 1 == main(["get", task_id, "--wait", "0"])

    out, err = printed()
    assert f"{task_id} unknown\n" == out
    assert "this is what is known" in err


def test_programs_read_the_document_alone(printed: Printed) -> None:
    task_id = submitted(printed)

    assert 9 == main(["get", task_id, "--wait", "0", "--json"])

    assert "" == printed()[1]
