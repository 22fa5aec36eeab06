"""docs/reports.md: each row whole and found under one name, each report named as its tracker does, no test left out."""

import ast
import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
PAGE = (PROJECT / "docs/reports.md").read_text()
ROW = re.compile(r"^\| ([RSE]\d\d): ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
REPORT = re.compile(r"[\w.-]+/[\w.-]+(#\d+| PR \d+| discussion \d+)")
NAMED = re.compile(r"\bR/(\w+\.py)::(\w+)")
REPORTED = 48


def test_each_row_is_whole_and_has_a_name_of_its_own() -> None:
    names = [name for name, *_ in ROW.findall(PAGE)]

    assert len(names) == len(re.findall(r"^\| [RSE]\d\d", PAGE, re.MULTILINE))
    assert len(names) == len(set(names))
    assert [f"E{number:02}" for number in range(1, 30)] == [name for name in names if name.startswith("E")]
    assert len([name for name in names if not name.startswith("E")]) == REPORTED


def test_each_report_is_named_as_its_tracker_does() -> None:
    named = [one.strip() for _, reports, *_ in ROW.findall(PAGE) for one in re.split("[;,]", reports)]

    assert [] == [one for one in named if REPORT.fullmatch(one) is None]


def test_each_row_names_a_test() -> None:
    assert [] == [name for name, *_, proof in ROW.findall(PAGE) if "::test_" not in proof]


def test_each_test_of_the_folder_stands_in_the_page() -> None:
    found = {
        (path.name, node.name)
        for path in (PROJECT / "tests/reports").glob("test_*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }

    assert found == set(NAMED.findall(PAGE))


def test_the_page_is_in_the_list_of_pages() -> None:
    assert "(docs/reports.md)" in (PROJECT / "README.md").read_text()
