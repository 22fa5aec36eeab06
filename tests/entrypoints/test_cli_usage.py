"""What somebody reads who typed a command that is none, or an id that is none."""

import json

import pytest

from dtq.application.tasks import TaskService
from dtq.domain.errors import BrokerUnavailable
from dtq.entrypoints import folder
from dtq.entrypoints.cli import main
from dtq.ports.broker import Recent
from tests.entrypoints.command_fixtures import backend, printed
from tests.entrypoints.commands import Printed

__all__ = ["backend", "printed"]


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["get", "a" * 32, "--bogus"], "get"),
        (["get", "a" * 32, "b" * 32], "get"),
        (["queue", "stats", "mail", "audio"], "queue stats"),
        (["dlq", "list", "--newest"], "dlq list"),
        (["cancel"], "cancel"),
    ],
)
def test_what_a_command_does_not_know_is_told_with_its_own_usage(
    arguments: list[str], command: str, printed: Printed
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)

    err = printed()[1]
    assert 2 == ended.value.code
    assert err.startswith(f"usage: dtq {command} ")
    assert f"dtq {command}: error: " in err


@pytest.mark.parametrize("arguments", [["dlq"], ["dlq", "retry", "a" * 32], ["dlq", "purge"], ["dlq", "--help"]])
def test_who_looks_for_acts_beside_the_list_is_told_where_they_are(arguments: list[str], printed: Printed) -> None:
    with pytest.raises(SystemExit):
        main(arguments)

    text = "".join(printed())
    assert all(f"`dtq {name}" in text for name in ("retry-dlq", "discard-dlq", "purge-dlq"))
    assert "list" in text


def test_who_looks_for_the_list_of_queues_beside_it_is_told_where_it_is(printed: Printed) -> None:
    with pytest.raises(SystemExit):
        main(["queue", "list"])

    assert "`dtq queues`" in printed()[1]


@pytest.mark.parametrize("command", ["get", "cancel", "retry-dlq", "discard-dlq"])
@pytest.mark.parametrize(
    ("task_id", "told"), [("", "no task ''"), ("A" * 32, f"no task '{'A' * 32}'"), ("one two", "no task 'one two'")]
)
def test_what_is_no_id_is_quoted_and_told_what_an_id_is(
    command: str, task_id: str, told: str, printed: Printed
) -> None:
    assert 3 == main([command, task_id])

    assert f"dtq: {told}: an id has 32 hex digits, 0-9 and a-f\n" == printed()[1]


def test_an_id_that_nobody_has_is_only_quoted(printed: Printed) -> None:
    assert 3 == main(["get", "0" * 32])

    assert f"dtq: no task '{'0' * 32}'\n" == printed()[1]


def test_who_named_no_broker_is_told_which_one_was_tried(monkeypatch: pytest.MonkeyPatch, printed: Printed) -> None:
    monkeypatch.delenv("DTQ_REDIS_URL")
    monkeypatch.setattr(TaskService, "recent", _unavailable)

    assert 1 == main(["list"])

    err = printed()[1]
    assert "DTQ_REDIS_URL is not set, so its default was tried, redis://localhost:6379/0" in err


def test_who_named_a_broker_is_not(monkeypatch: pytest.MonkeyPatch, printed: Printed) -> None:
    monkeypatch.setattr(TaskService, "recent", _unavailable)

    assert 1 == main(["list"])

    assert "the broker, which DTQ_REDIS_URL names, is unavailable" in printed()[1]


def test_a_list_says_how_many_tasks_it_leaves_out(monkeypatch: pytest.MonkeyPatch, printed: Printed) -> None:
    async def spoiled(*_: object, **__: object) -> Recent:
        return Recent([], unreadable=3)

    monkeypatch.setattr(TaskService, "recent", spoiled)

    assert 0 == main(["list"])
    assert "dtq: left out, for their records cannot be read: 3; see `dtq doctor`\n" == printed()[1]
    assert 0 == main(["list", "--json"])
    assert ({"tasks": [], "unreadable": 3}, "") == (json.loads((told := printed())[0]), told[1])


def test_who_is_led_to_a_broker_by_the_folder_is_told_so(
    monkeypatch: pytest.MonkeyPatch, printed: Printed, request: pytest.FixtureRequest
) -> None:
    found = folder.Found(settings={"DTQ_REDIS_URL": f"third://{id(request.node)}"})
    monkeypatch.delenv("DTQ_REDIS_URL")
    monkeypatch.setattr(folder, "read_settings", lambda _: found)
    monkeypatch.setattr(TaskService, "recent", _unavailable)

    assert 1 == main(["list"])

    err = printed()[1]
    assert "dtq: the broker of the `dtq dev` that runs in this folder, which .dtq names, is unavailable" in err
    assert "DTQ_REDIS_URL" not in err


async def _unavailable(*_: object, **__: object) -> None:
    raise BrokerUnavailable("refused")
