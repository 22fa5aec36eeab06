"""Dead letters at the command line: looked at, retried, discarded, purged; and what is refused in each state."""

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from typing import Final

import pytest

from dtq.domain.audit import AuditEntry
from dtq.domain.lifecycle import KEPT_PREVIOUS_ATTEMPTS
from dtq.domain.outcome import Succeeded, classify, unknown_task_type
from dtq.entrypoints.cli import main
from dtq.ports.backend import Backend
from tests.entrypoints.command_fixtures import backend, printed
from tests.entrypoints.commands import Printed, Terminal, document, end, submitted
from tests.entrypoints.driver import start_next

__all__ = ["backend", "printed"]

BROKEN = classify(ValueError("the lamp is broken"), retryable=())


def dead(backend: Backend, printed: Printed) -> str:
    task_id = submitted(printed)
    end(backend, BROKEN)
    return task_id


def audit(backend: Backend) -> Sequence[AuditEntry]:
    async def read() -> Sequence[AuditEntry]:
        return await backend.audit.recent(limit=10)

    return asyncio.run(read())


def test_the_list_shows_each_with_its_error(backend: Backend, printed: Printed) -> None:
    ids = [dead(backend, printed) for _ in range(2)]

    assert 0 == main(["dlq", "list"])

    heading, *lines = printed()[0].splitlines()
    assert ["task", "type", "queue", "attempts", "failed", "error"] == heading.split()
    assert ids[::-1] == [line.split()[0] for line in lines]
    assert all("1/5" in line and line.endswith("ValueError: the lamp is broken") for line in lines)


def test_the_list_is_one_document_for_programs(backend: Backend, printed: Printed) -> None:
    ids = [dead(backend, printed) for _ in range(2)]

    assert 0 == main(["dlq", "list", "--limit", "1", "--json"])

    body = document(printed)
    assert ([ids[1]], 2) == ([letter["task_id"] for letter in body["dead_letters"]], body["dlq_depth"])


def test_an_empty_list_says_so(printed: Printed) -> None:
    assert 0 == main(["dlq", "list"])

    assert "no dead letters\n" == printed()[0]


def test_a_retried_dead_letter_can_succeed(backend: Backend, printed: Printed) -> None:
    task_id = dead(backend, printed)

    assert 0 == main(["retry-dlq", task_id])
    assert f"{task_id} queued\n" == printed()[0]
    end(backend, Succeeded(result='"lit"'))

    assert 0 == main(["get", task_id, "--wait", "--json"])
    body = document(printed)
    assert ("succeeded", "lit", 1) == (body["status"], body["result"], body["attempt"])
    assert ["ValueError"] == [one["error_class"] for one in body["metadata"]["previous_attempts"]]


def test_a_retry_can_be_followed(backend: Backend, printed: Printed) -> None:
    task_id = dead(backend, printed)

    assert 9 == main(["retry-dlq", task_id, "--wait", "0", "--json"])

    body = document(printed)
    assert (task_id, "queued") == (body["task_id"], body["status"])


def test_who_looks_at_a_dead_letter_reads_what_to_do(backend: Backend, printed: Printed) -> None:
    task_id = dead(backend, printed)

    assert 0 == main(["get", task_id])

    out, err = printed()
    [attempt] = [line for line in out.splitlines() if line.startswith("history")]
    assert "attempt 1" in attempt
    assert "error_message the lamp is broken" in attempt
    assert f"`dtq retry-dlq {task_id} --wait`" in err


def test_attempts_of_earlier_lives_are_rows_of_the_history(backend: Backend, printed: Printed) -> None:
    task_id = submitted(printed, "--metadata", '{"who": "me"}')
    end(backend, BROKEN)
    main(["retry-dlq", task_id])
    end(backend, classify(KeyError("fuse"), retryable=()))
    printed()

    assert 0 == main(["get", task_id])

    rows = [line.split(maxsplit=1) for line in printed()[0].splitlines()]
    earlier, latest = [text for name, text in rows if name == "history"]
    assert earlier.startswith("earlier life: attempt 1, started_at ")
    assert "error_message the lamp is broken" in earlier
    assert latest.startswith("attempt 1, ")
    assert "fuse" in latest
    assert ['{"who":"me"}'] == [text for name, text in rows if name == "metadata"]
    assert [] == [text for name, text in rows if name == "discarded"]


def test_earlier_attempts_that_are_not_kept_are_counted(backend: Backend, printed: Printed) -> None:
    task_id = submitted(printed)
    for _ in range(KEPT_PREVIOUS_ATTEMPTS + 2):
        end(backend, BROKEN)
        main(["retry-dlq", task_id])
    printed()

    assert 0 == main(["get", task_id])

    history = [line for line in printed()[0].splitlines() if line.startswith("history")]
    assert history[0].endswith("of earlier lives 2 more attempts, which are not kept")
    assert 1 + KEPT_PREVIOUS_ATTEMPTS == len(history)


def test_a_discarded_one_says_so_in_a_line_of_its_own(backend: Backend, printed: Printed) -> None:
    task_id = dead(backend, printed)
    main(["discard-dlq", task_id])
    printed()

    assert 0 == main(["get", task_id])

    out, err = printed()
    assert ["discarded", "yes"] in [line.split() for line in out.splitlines()]
    assert ["metadata", "{}"] in [line.split() for line in out.splitlines()]
    assert "retry-dlq" not in err


def test_of_an_unknown_type_it_is_told_that_a_worker_lacks_it(backend: Backend, printed: Printed) -> None:
    task_id = submitted(printed)
    end(backend, unknown_task_type("greet"))

    assert 0 == main(["get", task_id])

    err = printed()[1]
    assert "dtq: the worker of queue default that took this task knows no task type greet; `dtq workers`" in err
    assert f"`dtq retry-dlq {task_id} --wait`" in err


def test_a_discarded_one_is_gone_from_the_list_and_stays_dead(backend: Backend, printed: Printed) -> None:
    task_id = dead(backend, printed)

    assert 0 == main(["discard-dlq", task_id, "--json"])

    assert {"task_id": task_id, "status": "dead_lettered", "discarded": True} == document(printed)
    main(["dlq", "list", "--json"])
    assert [] == document(printed)["dead_letters"]


def test_a_purge_asks_nobody_where_nobody_is(backend: Backend, printed: Printed) -> None:
    dead(backend, printed)

    assert 2 == main(["purge-dlq"])

    assert "say --yes" in printed()[1]
    main(["dlq", "list", "--json"])
    assert 1 == document(printed)["dlq_depth"]
    assert [] == list(audit(backend))


def test_a_process_without_stdin_is_asked_nothing_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)

    assert 2 == main(["purge-dlq"])


@pytest.mark.parametrize(("answer", "ended"), [("y\n", 0), ("YES\n", 0), ("n\n", 2), ("", 2)])
def test_at_a_terminal_a_purge_asks(
    answer: str, ended: int, backend: Backend, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead(backend, printed)
    monkeypatch.setattr(sys, "stdin", Terminal(answer))

    assert ended == main(["purge-dlq"])

    assert "discard all dead letters (1)? [y/N]" in printed()[1]
    main(["dlq", "list", "--json"])
    assert (1 if ended else 0) == document(printed)["dlq_depth"]


def test_a_purge_says_how_many_and_is_audited(backend: Backend, printed: Printed) -> None:
    dead(backend, printed)
    dead(backend, printed)

    assert 0 == main(["purge-dlq", "--yes"])

    assert "dead letters discarded: 2\n" == printed()[0]
    [entry] = audit(backend)
    assert ("dlq.purge", 2, "done") == (entry.action, entry.count, entry.outcome)


def pending(_: Backend, printed: Printed) -> str:
    return submitted(printed, "--delay-seconds", "60")


def queued(_: Backend, printed: Printed) -> str:
    return submitted(printed)


def running(backend: Backend, printed: Printed) -> str:
    async def start() -> None:
        await start_next(backend)

    task_id = submitted(printed)
    asyncio.run(start())
    return task_id


def succeeded(backend: Backend, printed: Printed) -> str:
    task_id = submitted(printed)
    end(backend, Succeeded(result="1"))
    return task_id


def discarded(backend: Backend, printed: Printed) -> str:
    task_id = dead(backend, printed)
    main(["discard-dlq", task_id])
    return task_id


def purged(backend: Backend, printed: Printed) -> str:
    task_id = dead(backend, printed)
    main(["purge-dlq", "--yes"])
    return task_id


def unknown(_: Backend, __: Printed) -> str:
    return "0" * 32


Make = Callable[[Backend, Printed], str]
ACTIONS: Final = {"cancel": "task.cancel", "retry-dlq": "dlq.requeue", "discard-dlq": "dlq.discard"}
ENDS: Final[dict[Make, tuple[int, int, int]]] = {
    pending: (0, 4, 4),
    queued: (0, 4, 4),
    running: (4, 4, 4),
    succeeded: (7, 4, 4),
    dead: (7, 0, 0),
    discarded: (7, 7, 7),
    purged: (7, 3, 3),
    unknown: (3, 3, 3),
}


@pytest.mark.parametrize("command", ACTIONS)
@pytest.mark.parametrize("make", ENDS, ids=lambda make: make.__name__)
def test_every_act_in_every_state_ends_as_it_should_and_is_audited(
    make: Make, command: str, backend: Backend, printed: Printed
) -> None:
    task_id = make(backend, printed)
    printed()

    ended = main([command, task_id, "--json"])

    assert ENDS[make][list(ACTIONS).index(command)] == ended
    out, err = printed()
    code = json.loads(err)["code"] if ended else "done"
    assert (ended == 0) == bool(out)
    entry = audit(backend)[0]
    # asking a running task to stop is an act of its own, which is done each time
    done = ("task.cancel_requested", "done") if code == "CANCEL_REQUESTED" else (ACTIONS[command], code)
    assert (*done, task_id) == (entry.action, entry.outcome, entry.task_id)
    assert entry.actor.startswith("cli:")
    assert entry.request_id
