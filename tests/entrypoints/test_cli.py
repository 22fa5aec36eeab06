"""What commands do and print."""

import asyncio
import io
import json
import sys
from typing import Any

import pytest

from dtq.domain import errors
from dtq.domain.outcome import Succeeded, classify
from dtq.entrypoints.cli import main
from dtq.entrypoints.cli.exits import EXIT_OF
from dtq.ports.backend import Backend
from tests.entrypoints.command_fixtures import backend, printed
from tests.entrypoints.commands import Printed, document, end, submit, submitted
from tests.entrypoints.driver import start_next

__all__ = ["backend", "printed"]


def test_submit_prints_id_and_status(printed: Printed) -> None:
    assert 0 == submit()

    task_id, status = printed()[0].split()
    assert (32, "queued") == (len(task_id), status)


def test_submit_prints_one_json_document(printed: Printed) -> None:
    assert 0 == submit("--json", "--delay-seconds", "5")

    out, err = printed()
    assert "pending" == json.loads(out)["status"]
    assert "this module prints\n" == err


def test_submit_passes_every_option_on(printed: Printed) -> None:
    options = [
        "--queue",
        "mail",
        "--idempotency-key",
        "k",
        "--max-attempts",
        "2",
        "--priority",
        "9",
        "--timeout-ms",
        "7",
    ]
    task_id = submitted(printed, *options, "--metadata", '{"ttl_seconds": 60}')

    assert 0 == main(["get", task_id, "--json"])

    shown = {"queue": "mail", "idempotency_key": "k", "max_attempts": 2, "priority": 9, "timeout_ms": 7}
    body = document(printed)
    assert {**shown, "metadata": {"ttl_seconds": 60}} == {name: body[name] for name in [*shown, "metadata"]}


def test_wait_prints_the_task_with_its_result(backend: Backend, printed: Printed) -> None:
    submitted(printed, "--idempotency-key", "k")
    end(backend, Succeeded(result='{"text": "hi"}'))

    assert 0 == submit("--idempotency-key", "k", "--wait", "--json")

    body = document(printed)
    assert ("succeeded", {"text": "hi"}, True) == (body["status"], body["result"], body["duplicate"])


def test_wait_tells_failure_by_its_exit_code(backend: Backend, printed: Printed) -> None:
    submitted(printed, "--idempotency-key", "k")
    end(backend, classify(ValueError("why"), retryable=()))

    assert 8 == submit("--idempotency-key", "k", "--wait")

    out, _ = printed()
    assert "dead_lettered" in out
    assert "ValueError" in out


def test_wait_tells_at_its_limit_that_the_task_still_runs(printed: Printed) -> None:
    assert 9 == submit("--wait", "0", "--json")

    assert "queued" == document(printed)["status"]


def test_a_duplicate_is_told_and_done(backend: Backend, printed: Printed) -> None:
    task_id = submitted(printed, "--idempotency-key", "k")
    end(backend, Succeeded(result="1"))

    assert 0 == submit("--idempotency-key", "k")

    assert f"{task_id} succeeded (duplicate)\n" == printed()[0]


def test_a_living_key_is_a_conflict(printed: Printed) -> None:
    task_id = submitted(printed, "--idempotency-key", "k")

    assert 4 == submit("--idempotency-key", "k", "--json")

    problem = json.loads(printed()[1].splitlines()[-1])
    assert ("IDEMPOTENCY_IN_PROGRESS", task_id) == (problem["code"], problem["task_id"])


def test_get_shows_a_table(printed: Printed) -> None:
    task_id = submitted(printed)

    assert 0 == main(["get", task_id])

    out, _ = printed()
    rows = dict(line.split(maxsplit=1) for line in out.splitlines() if " " in line.strip())
    assert (task_id, "queued", '{"a": 1}') == tuple(rows[name].strip() for name in ("task_id", "status", "payload"))


def test_list_shows_a_table(printed: Printed) -> None:
    ids = [submitted(printed) for _ in range(3)]

    assert 0 == main(["list", "--limit", "2"])

    lines = printed()[0].splitlines()
    assert [ids[2], ids[1]] == [line.split()[0] for line in lines[1:]]


def test_list_can_be_narrowed(printed: Printed) -> None:
    submitted(printed)
    wanted = submitted(printed, "--queue", "mail", "--delay-seconds", "9")

    assert 0 == main(["list", "--queue", "mail", "--status", "pending", "--json"])

    assert [wanted] == [task["task_id"] for task in document(printed)["tasks"]]


def test_cancel_says_what_it_did_once(printed: Printed) -> None:
    task_id = submitted(printed)

    assert 0 == main(["cancel", task_id])
    assert f"{task_id} cancelled\n" == printed()[0]
    assert 7 == main(["cancel", task_id])


def test_cancel_is_audited_with_its_user(backend: Backend, printed: Printed) -> None:
    task_id = submitted(printed)

    main(["cancel", task_id])

    [entry] = asyncio.run(_audit(backend))
    assert ("task.cancel", task_id) == (entry.action, entry.task_id)
    assert entry.actor.startswith("cli:")
    assert "@" in entry.actor


def test_a_running_task_is_asked_to_stop(backend: Backend, printed: Printed) -> None:
    task_id = submitted(printed)
    asyncio.run(_started(backend))

    assert 4 == main(["cancel", task_id])

    assert "cancellation is requested" in printed()[1]


@pytest.mark.parametrize("command", ["get", "cancel"])
@pytest.mark.parametrize("task_id", ["0" * 32, "no-id", "\x1b[31m"])
def test_an_unknown_task_is_not_found(command: str, task_id: str, printed: Printed) -> None:
    assert 3 == main([command, task_id])

    assert printed()[1].rstrip("\n").isprintable()


def test_the_payload_can_come_from_stdin(monkeypatch: pytest.MonkeyPatch, printed: Printed) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"from": "stdin"}'))

    task_id = submitted(printed, "--payload", "-")

    assert 0 == main(["get", task_id, "--json"])
    assert {"from": "stdin"} == document(printed)["payload"]


def test_a_strangers_text_cannot_paint_the_terminal(printed: Printed) -> None:
    task_id = submitted(printed, "--payload", '{"a": "[red]x[/red] \x9b31m"}')

    assert 0 == main(["get", task_id])

    out, _ = printed()
    assert "[red]x[/red]" in out
    assert "\x9b" not in out


def test_help_documents_the_exit_codes(printed: Printed) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])

    out, _ = printed()
    assert all(f" {code} " in out for code in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 70, 75, 130))


def test_every_code_that_services_raise_has_an_exit() -> None:
    codes = {
        kind.code for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.DtqError)
    }

    assert codes - {"INTERNAL", "UNAUTHORIZED"} <= set(EXIT_OF)


async def _audit(backend: Backend) -> Any:
    return await backend.audit.recent(limit=10)


async def _started(backend: Backend) -> None:
    await start_next(backend)
