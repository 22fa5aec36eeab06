"""Many dead letters at the command line: narrowed lists, and acts on several at once."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from dtq.application.dead_letters import DeadLetterService, Requeued
from dtq.domain.audit import Actor
from dtq.domain.errors import BrokerUnavailable
from dtq.domain.outcome import classify
from dtq.entrypoints.cli import main
from dtq.ports.backend import Backend
from tests.entrypoints.command_fixtures import backend, printed
from tests.entrypoints.commands import Printed, document, end, submitted

__all__ = ["backend", "printed"]

BROKEN = classify(ValueError("the lamp is broken"), retryable=())
UNKNOWN = "0" * 32
ACTS = {"retry-dlq": "queued", "discard-dlq": "discarded"}


def dead(backend: Backend, printed: Printed, *, queue: str = "default") -> str:
    task_id = submitted(printed, "--queue", queue)
    end(backend, BROKEN, queue=queue)
    return task_id


def lines(printed: Printed) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in printed()[0].splitlines()]


@pytest.mark.parametrize("command", ACTS)
def test_several_are_done_and_each_is_reported(command: str, backend: Backend, printed: Printed) -> None:
    ids = [dead(backend, printed) for _ in range(3)]

    assert 0 == main([command, *ids])

    assert [f"{task_id} {ACTS[command]}" for task_id in ids] == printed()[0].splitlines()
    main(["audit", "--json"])
    assert set(ids) == {entry["task_id"] for entry in document(printed)["entries"]}


@pytest.mark.parametrize("command", ACTS)
def test_one_that_is_refused_keeps_no_other_from_being_done(command: str, backend: Backend, printed: Printed) -> None:
    living = submitted(printed, "--queue", "other")
    first, last = (dead(backend, printed) for _ in range(2))

    assert 4 == main([command, first, living, UNKNOWN, last])

    out, err = printed()
    assert [first, last] == [line.split()[0] for line in out.splitlines()]
    assert [f"task {living} is queued, not a dead letter", f"no task '{UNKNOWN}'"] == [
        line.removeprefix("dtq: ") for line in err.splitlines()
    ]


@pytest.mark.parametrize("command", ACTS)
def test_programs_read_a_line_of_each(command: str, backend: Backend, printed: Printed) -> None:
    task_id = dead(backend, printed)

    assert 3 == main([command, UNKNOWN, task_id, "--json"])

    refused, done = lines(printed)
    assert (UNKNOWN, "TASK_NOT_FOUND") == (refused["task_id"], refused["code"])
    assert task_id == done["task_id"]
    assert "status" in done


def test_a_broker_that_goes_away_ends_it(backend: Backend, printed: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [dead(backend, printed) for _ in range(3)]
    requeue = DeadLetterService.requeue

    async def until_the_second(service: DeadLetterService, task_id: str, *, by: Actor) -> Requeued:
        if task_id == ids[1]:
            raise BrokerUnavailable("refused")
        return await requeue(service, task_id, by=by)

    monkeypatch.setattr(DeadLetterService, "requeue", until_the_second)

    assert 1 == main(["retry-dlq", *ids])

    out, err = printed()
    assert [f"{ids[0]} queued"] == out.splitlines()
    assert f"dtq: not tried any more: 1, from {ids[2]} on" == err.splitlines()[-1]


def test_several_cannot_be_waited_for(printed: Printed) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["retry-dlq", UNKNOWN, UNKNOWN, "--wait"])

    assert 2 == ended.value.code
    assert "--wait follows one task" in printed()[1]


def test_a_list_can_be_narrowed(backend: Backend, printed: Printed) -> None:
    in_mail = [dead(backend, printed, queue="mail") for _ in range(2)]
    dead(backend, printed)

    assert 0 == main(["dlq", "list", "--queue", "mail", "--type", "greet", "--json"])
    assert in_mail[::-1] == [letter["task_id"] for letter in document(printed)["dead_letters"]]

    assert 0 == main(["dlq", "list", "--queue", "mail", "--type", "other"])
    assert ("no dead letters\n", "") == printed()


def test_a_list_that_was_cut_says_so(backend: Backend, printed: Printed) -> None:
    for _ in range(2):
        dead(backend, printed)
        dead(backend, printed, queue="mail")

    main(["dlq", "list", "--limit", "3"])
    assert "dtq: these are the newest 3 of 4; --limit N shows up to 500\n" == printed()[1]
    main(["dlq", "list", "--limit", "1", "--queue", "mail"])
    assert "dtq: these are the newest 1 of 2; --limit N shows up to 500\n" == printed()[1]
    main(["dlq", "list", "--limit", "4"])
    assert "" == printed()[1]


def test_a_narrowed_list_says_how_far_it_looked(
    backend: Backend, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead(backend, printed)

    async def many() -> int:
        return 501

    monkeypatch.setattr(backend.dead_letters, "count", many)

    assert 0 == main(["dlq", "list", "--queue", "mail"])

    assert "dtq: only the newest 1 of 501 dead letters were looked at\n" == printed()[1]


def test_the_name_of_a_queue_is_checked(printed: Printed) -> None:
    assert 2 == main(["dlq", "list", "--queue", "Mail!"])

    assert "dtq: queue: must be text of the form" in printed()[1]
