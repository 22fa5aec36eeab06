"""docs/security.md has a row for each check, each with tests that exist; and every module of this suite is in it."""

import ast
import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
PAGE = (PROJECT / "docs/security.md").read_text()
TEST = re.compile(r"\b(S|tests/[\w/]+)/(\w+\.py)::(\w+)")
ROW = re.compile(r"^\| (\d+) [^|]+\|([^|]+)\|([^|]+)\|$", re.MULTILINE)
FOLDER = "tests/security"


def named_in(text: str) -> set[tuple[str, str]]:
    """The tests that a text names: module and name."""
    return {(f"{FOLDER if folder == 'S' else folder}/{file}", name) for folder, file, name in TEST.findall(text)}


def functions_of(module: str) -> set[str]:
    """The functions of a module."""
    body = ast.parse((PROJECT / module).read_text()).body
    return {node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_each_of_the_fifteen_checks_has_a_row_with_a_promise_and_tests() -> None:
    rows = {int(number): (promise, named_in(proofs)) for number, promise, proofs in ROW.findall(PAGE)}

    assert list(range(1, 16)) == sorted(rows)
    for promise, proofs in rows.values():
        assert len(promise) > 20
        assert [module for module, _ in proofs if module.startswith(FOLDER)]


def test_each_test_that_is_named_exists() -> None:
    named = named_in(PAGE)

    assert len(named) > 50
    assert [] == sorted((module, name) for module, name in named if name not in functions_of(module))


def test_every_module_of_the_suite_stands_behind_a_promise() -> None:
    modules = {f"{FOLDER}/{path.name}" for path in Path(__file__).parent.glob("test_*.py")}

    assert modules - {f"{FOLDER}/{Path(__file__).name}"} == {
        module for module, _ in named_in(PAGE) if module.startswith(FOLDER)
    }


def test_the_page_is_in_the_list_of_pages() -> None:
    assert "(docs/security.md)" in (PROJECT / "README.md").read_text()
