"""What a command does not do: ask nobody, send a thing twice, or take a caller's word for who that is."""

import asyncio
import getpass
import io
import json
import os
import pwd
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from dtq.application.tasks import TaskService
from dtq.domain.errors import BrokerUnavailable, OutcomeUnknown
from dtq.domain.outcome import classify
from dtq.entrypoints.cli import main
from dtq.ports.backend import Backend
from tests.entrypoints.command_fixtures import backend, printed
from tests.entrypoints.commands import Printed, document, end, submitted

__all__ = ["backend", "printed"]

BROKEN = classify(ValueError("the lamp is broken"), retryable=())


@pytest.mark.parametrize("stdin", [None, "y\n"])
def test_without_a_terminal_nothing_is_purged_unless_yes_was_said(
    backend: Backend, printed: Printed, monkeypatch: pytest.MonkeyPatch, stdin: str | None
) -> None:
    submitted(printed)
    end(backend, BROKEN)
    monkeypatch.setattr(sys, "stdin", None if stdin is None else io.StringIO(stdin))

    assert 2 == main(["purge-dlq"])

    assert "no terminal to ask at: nothing was done; say --yes" in printed()[1]
    main(["dlq", "list", "--json"])
    assert 1 == document(printed)["dlq_depth"]


@pytest.mark.parametrize(
    ("error", "key", "tries"),
    [
        (OutcomeUnknown("the reply was lost"), None, 1),
        (OutcomeUnknown("the reply was lost"), "key", 2),
        (BrokerUnavailable("nothing was sent"), None, 2),
    ],
)
def test_a_line_without_a_key_is_not_sent_again_where_it_may_be_there(
    printed: Printed, monkeypatch: pytest.MonkeyPatch, error: Exception, key: str | None, tries: int
) -> None:
    inner, calls = TaskService.submit_many, list[int]()

    async def losing(service: TaskService, wanted: Sequence[Mapping[str, object]]) -> Any:
        calls.append(len(wanted))
        return [error] if len(calls) == 1 else await inner(service, wanted)

    monkeypatch.setattr(TaskService, "submit_many", losing)
    line = {"task_type": "greet", "payload": {}, **({} if key is None else {"idempotency_key": key})}
    Path("tasks.jsonl").write_text(json.dumps(line) + "\n")

    main(["submit", "--file", "tasks.jsonl"])

    printed()
    assert tries == len(calls)


def test_the_trail_has_the_systems_word_for_who_acts(
    backend: Backend, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "somebody-else")
    assert "somebody-else" == getpass.getuser()

    assert 0 == main(["purge-dlq", "--yes"])

    printed()
    (entry,) = asyncio.run(backend.audit.recent(limit=1))
    assert entry.actor.startswith(f"cli:{pwd.getpwuid(os.getuid()).pw_name}@")
