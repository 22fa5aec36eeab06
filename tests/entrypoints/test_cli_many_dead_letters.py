"""Many dead letters at the command line: narrowed lists, and acts on several at once."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from dtq.application.dead_letters import DeadLetterService
from dtq.domain.audit import Actor
from dtq.domain.errors import BrokerRefused, BrokerUnavailable, DtqError, OutcomeUnknown, StepStopped
from dtq.domain.outcome import classify
from dtq.entrypoints.cli import main
from dtq.entrypoints.cli.session import Terminated
from dtq.entrypoints.cli.streams import Unwritten
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


def fail_at(fated: str, error: BaseException, monkeypatch: pytest.MonkeyPatch, *, name: str = "requeue") -> None:
    """Let the act *name* end with *error* for the task *fated*."""
    act = getattr(DeadLetterService, name)

    async def until(service: DeadLetterService, task_id: str, *, by: Actor) -> object:
        if task_id == fated:
            raise error
        return await act(service, task_id, by=by)

    monkeypatch.setattr(DeadLetterService, name, until)


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
    fail_at(ids[1], BrokerUnavailable("refused"), monkeypatch)

    assert 1 == main(["retry-dlq", *ids])

    out, err = printed()
    assert [f"{ids[0]} queued"] == out.splitlines()
    assert f"dtq: not tried any more: 1, from {ids[2]} on" == err.splitlines()[-1]


@pytest.mark.parametrize("kind", [BrokerRefused, StepStopped, OutcomeUnknown, BrokerUnavailable])
def test_each_refusal_names_its_task_once(
    kind: type[DtqError], backend: Backend, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    living, fated = submitted(printed, "--queue", "other"), dead(backend, printed)
    fail_at(fated, kind("no"), monkeypatch)

    assert 4 == main(["retry-dlq", living, fated])

    err = printed()[1].splitlines()
    assert [1, 1] == [line.count(task_id) for line, task_id in zip(err, (living, fated), strict=True)]
    assert err[1].startswith(f"dtq: {fated}: ")


@pytest.mark.parametrize("command", ACTS)
@pytest.mark.parametrize("how", [[], ["--json"]])
def test_a_broker_that_nobody_named_is_called_the_default(
    command: str, how: list[str], printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DTQ_REDIS_URL")
    for name in ("requeue", "discard"):
        fail_at(UNKNOWN, BrokerUnavailable("no"), monkeypatch, name=name)

    assert 1 == main([command, UNKNOWN, "1" * 32, *how])

    assert "DTQ_REDIS_URL is not set, so its default was tried" in "".join(printed())


@pytest.mark.parametrize(("cut", "code"), [(KeyboardInterrupt, 130), (Terminated, 143)])
def test_what_is_cut_off_tells_how_far_it_came(
    cut: type[BaseException], code: int, backend: Backend, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [dead(backend, printed) for _ in range(4)]
    fail_at(ids[1], cut(), monkeypatch)

    assert code == main(["retry-dlq", *ids])

    out, err = printed()
    assert [f"{ids[0]} queued"] == out.splitlines()
    assert [
        f"dtq: {ids[1]}: cut off; it may or may not have been done",
        f"dtq: not tried any more: 2, from {ids[2]} on",
    ] == err.splitlines()


@pytest.mark.parametrize("how", [[], ["--json"]])
def test_a_full_disk_tells_how_far_it_came(
    how: list[str], backend: Backend, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [dead(backend, printed) for _ in range(3)]

    def full(*_: object, **__: object) -> None:
        raise Unwritten("stdout: no space")

    monkeypatch.setattr("dtq.entrypoints.cli.several.print_json_line", full)
    monkeypatch.setattr("dtq.entrypoints.cli.several.print_answer", full)

    assert 1 == main(["discard-dlq", *ids, *how])

    assert [
        f"dtq: cut off after {ids[0]}",
        f"dtq: not tried any more: 2, from {ids[1]} on",
        "dtq: stdout: no space",
    ] == printed()[1].splitlines()


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
