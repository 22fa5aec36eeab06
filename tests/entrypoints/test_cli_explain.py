"""dtq explain: what people and programs read of why a task is not running."""

import asyncio
import json

from dtq.adapters.memory import State
from dtq.domain.outcome import classify
from dtq.domain.task import TaskId
from dtq.entrypoints.cli import main
from dtq.ports.backend import Backend
from tests.entrypoints.command_fixtures import backend, printed
from tests.entrypoints.commands import Printed, document, end, submitted
from tests.entrypoints.driver import start_next

__all__ = ["backend", "printed"]


def explain(printed: Printed, task_id: str) -> list[str]:
    printed()
    assert 0 == main(["explain", task_id])
    out, err = printed()
    assert "" == err
    return out.splitlines()


def test_people_read_the_reasons_in_their_order_and_what_happens_next(printed: Printed) -> None:
    for _ in range(2):
        submitted(printed, "--priority", "9")
    task_id = submitted(printed)
    main(["queue", "pause", "default"])

    assert [
        f"task {task_id} (greet, queue default, priority 5) is queued",
        "- queue default is paused, `dtq queue resume default` ends that",
        "- no live worker serves queue default, see `dtq workers`",
        "- 2 ahead of it in higher priorities, 0 in its own",
        "next: once the queue is resumed and a worker serves it, it starts when its turn comes",
    ] == explain(printed, task_id)


def test_programs_read_one_document(printed: Printed) -> None:
    task_id = submitted(printed)

    assert 0 == main(["explain", task_id, "--json"])

    body = document(printed)
    assert [
        {
            "code": "no_worker",
            "text": "no live worker serves queue default, see `dtq workers`",
            "figures": {"queue": "default", "live_workers": 0},
            "about": [],
        }
    ] == body["reasons"]
    assert (task_id, "queued", "start_worker") == (body["task_id"], body["status"], body["next"]["code"])


def test_a_dead_letter_says_what_can_be_done(backend: Backend, printed: Printed) -> None:
    task_id = submitted(printed)
    end(backend, classify(ValueError("the lamp is broken"), retryable=()))

    headline, reason, following = explain(printed, task_id)

    assert headline.endswith("is dead_lettered")
    assert reason.startswith("- it was given up at 20")
    assert reason.endswith(": ValueError, which is not worth another attempt")
    assert f"`dtq retry-dlq {task_id}`" in following
    assert "the lamp" not in reason


def test_a_task_that_runs(backend: Backend, printed: Printed) -> None:
    async def start() -> None:
        await start_next(backend)

    task_id = submitted(printed)
    asyncio.run(start())

    headline, reason, _ = explain(printed, task_id)

    assert headline.endswith("is running")
    assert reason.startswith("- attempt 1 of 5 runs on worker-00000001 since 20")


def test_a_record_that_cannot_be_read(backend: Backend, printed: Printed) -> None:
    task_id = submitted(printed)
    state: State = vars(backend.locator)["_state"]
    state.faults.garbled.add(TaskId(task_id))

    headline, reason, following = explain(printed, task_id)

    assert f"task {task_id}" == headline
    assert "- the record is garbled" == reason
    assert "`dtq doctor`" in following


def test_an_unknown_task_ends_with_3(printed: Printed) -> None:
    task_id = "0" * 32

    assert 3 == main(["explain", task_id, "--json"])

    out, err = printed()
    assert "" == out
    assert "TASK_NOT_FOUND" == json.loads(err)["code"]
