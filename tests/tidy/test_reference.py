"""docs/reference.md says what the code does: names, defaults, bounds, codes, events and keys."""

import re
from pathlib import Path

import pytest
from msgspec.structs import FieldInfo, fields

from dtq.adapters.logs import FIELDS
from dtq.adapters.redis.keys import BANDS, Keyspace
from dtq.application.presence import WorkerIdInUse
from dtq.domain.events import EventType
from dtq.domain.task import QueueName, TaskId, WorkerId
from dtq.entrypoints.cli.exits import EXIT_OF, HELP, Exit
from dtq.entrypoints.config import Settings, allowed, variable
from dtq.entrypoints.http.errors import STATUS_OF

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference.md").read_text()
ONLY_HTTP = {"UNAUTHORIZED", "NOT_FOUND", "METHOD_NOT_ALLOWED", "ORIGIN_NOT_ALLOWED", "TOO_MANY_CLIENTS"}
ONLY_WORKER = {WorkerIdInUse.code}


def rows(section: str) -> dict[str, list[str]]:
    """The table of a section: what stands in the first cell, without quotes, and the other cells."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    cells = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]
    return {first: rest for first, *rest in cells}


def shown(value: object) -> str:
    """A default as an operator would write it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def test_every_setting_is_there_with_its_default() -> None:
    expected = {variable(name): shown(getattr(Settings(), name)) for name in Settings.__struct_fields__}

    assert expected == {name: default for name, (default, *_) in rows("Settings").items()}


@pytest.mark.parametrize("field", fields(Settings), ids=lambda field: field.name)
def test_the_bounds_of_a_setting_are_those_that_a_fault_names(field: FieldInfo) -> None:
    bounds = allowed(field)

    assert bounds in {"a text", rows("Settings")[variable(field.name)][1]}


def test_every_error_code_is_there_with_its_status_and_exit() -> None:
    codes = set(STATUS_OF) | set(EXIT_OF)
    status = {code: str(int(STATUS_OF[code])) if code in STATUS_OF else "" for code in codes}
    ends = {code: "" if code in ONLY_HTTP else str(int(EXIT_OF.get(code, Exit.FAILED))) for code in codes}

    assert {code: [status[code], ends[code]] for code in codes} == {
        code: cells[:2] for code, cells in rows("Errors").items()
    }
    assert set(STATUS_OF) ^ codes == ONLY_WORKER


def test_every_exit_code_is_there() -> None:
    text = " ".join(PAGE.partition("Exit codes of commands:")[2].partition("\n## ")[0].split())

    assert set(re.findall(r"\b(\d+) [a-z-]", HELP)) == set(re.findall(r"\b(\d+) (?!s\b)[a-z`-]", text))


def test_every_event_is_there() -> None:
    assert set(EventType) == set(rows("Events"))


def test_every_key_is_there() -> None:
    keys = Keyspace("dtq")
    queue, task_id, worker_id = QueueName("<queue>"), TaskId("<task_id>"), WorkerId("<worker_id>")
    names = {value for name, value in vars(keys).items() if name not in {"prefix", "task_prefix"}}
    made = {
        keys.task(task_id),
        keys.result(task_id),
        keys.idempotency(queue, "<key>"),
        keys.paused(queue),
        keys.worker(worker_id),
        keys.worker_channel(worker_id),
        keys.queue_channel(queue),
    }

    assert names | made | {"dtq:stream:<queue>:p<0-9>"} == set(rows("Keys"))
    assert f"dtq:stream:<queue>:p{BANDS[0]}" == keys.stream(queue, 9)


def test_every_field_of_a_log_line_is_there() -> None:
    section = PAGE.partition("\n## Log lines\n")[2]

    assert [] == [name for name in FIELDS if name not in section]
