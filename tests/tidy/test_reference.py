"""docs/reference.md and docs/configuration.md say what the code does: settings, codes, events and log lines."""

import re
from pathlib import Path

import pytest
from msgspec.structs import FieldInfo, fields

from dtq.adapters.logs import FIELDS
from dtq.application.presence import WorkerIdInUse
from dtq.domain.events import EventType
from dtq.entrypoints.cli.exits import EXIT_OF, HELP, Exit
from dtq.entrypoints.config import Settings, allowed, variable
from dtq.entrypoints.http.errors import STATUS_OF
from tests.tidy.tables import rows

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "reference.md").read_text()
SETTINGS = rows((DOCS / "configuration.md").read_text(), "## Settings")
ONLY_HTTP = {"UNAUTHORIZED", "NOT_FOUND", "METHOD_NOT_ALLOWED", "ORIGIN_NOT_ALLOWED", "TOO_MANY_CLIENTS"}
ONLY_WORKER = {WorkerIdInUse.code}


def shown(value: object) -> str:
    """A default as an operator would write it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def test_every_setting_is_there_with_its_default() -> None:
    expected = {variable(name): shown(getattr(Settings(), name)) for name in Settings.__struct_fields__}

    assert expected == {name: default for name, (default, *_) in SETTINGS.items()}


@pytest.mark.parametrize("field", fields(Settings), ids=lambda field: field.name)
def test_the_bounds_of_a_setting_are_those_that_a_fault_names(field: FieldInfo) -> None:
    bounds = allowed(field)

    assert bounds in {"a text", SETTINGS[variable(field.name)][1]}


def test_every_error_code_is_there_with_its_status_and_exit() -> None:
    codes = set(STATUS_OF) | set(EXIT_OF)
    status = {code: str(int(STATUS_OF[code])) if code in STATUS_OF else "" for code in codes}
    ends = {code: "" if code in ONLY_HTTP else str(int(EXIT_OF.get(code, Exit.FAILED))) for code in codes}

    assert {code: [status[code], ends[code]] for code in codes} == {
        code: cells[:2] for code, cells in rows(PAGE, "## Errors").items()
    }
    assert set(STATUS_OF) ^ codes == ONLY_WORKER


def test_every_exit_code_is_there() -> None:
    text = " ".join(PAGE.partition("Exit codes of commands:")[2].partition("\n## ")[0].split())

    assert set(re.findall(r"\b(\d+) [a-z-]", HELP)) == set(re.findall(r"\b(\d+) (?!s\b)[a-z`-]", text))


def test_every_event_is_there() -> None:
    assert set(EventType) == set(rows(PAGE, "## Events"))


def test_every_field_of_a_log_line_is_there() -> None:
    section = PAGE.partition("\n## Log lines\n")[2]

    assert [] == [name for name in FIELDS if name not in section]
