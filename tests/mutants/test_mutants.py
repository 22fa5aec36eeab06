"""Each edit of tests/contract/mutants.txt, made in a copy of the tree, turns its tests red; the form of both lists."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from tests.contract.run_mutants import (
    JOBS,
    BadMutant,
    Bench,
    Mutant,
    Suite,
    Tree,
    Verdict,
    read_mutants,
    sampled,
    suites_of,
)
from tests.mutants.ahead import found_ahead
from tests.simulation.run_planted import read_planted

MUTANTS = read_mutants()
PLANTED = read_planted()
FEWEST = 30
LIMIT = 600
"""Seconds for one test, which may have to wait for the edits before its own."""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return Tree(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="module")
def findings(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[Suite | Mutant, Future[bool]]]:
    """What the chosen tests of this module ask for, found out by as many threads as there is room for."""
    bench = Bench(tmp_path_factory.mktemp("bench"), copies=JOBS)
    ways: Mapping[str, Callable[[Any], bool]] = {"suite": bench.is_green, "mutant": bench.is_noticed}
    with found_ahead(request.session.items, jobs=JOBS, ways=ways) as found:
        yield found


@pytest.mark.parametrize("edits", [MUTANTS, PLANTED], ids=["mutants", "planted"])
def test_a_list_is_long_enough_and_names_no_edit_twice(edits: Sequence[Mutant]) -> None:
    assert len(edits) >= FEWEST
    assert len({(edit.file, edit.text, edit.replacement, edit.tests) for edit in edits}) == len(edits)


@pytest.mark.parametrize("edit", [*MUTANTS, *PLANTED], ids=str)
def test_an_edit_fits_in_exactly_one_place(edit: Mutant, tree: Tree) -> None:
    assert tree.edited(edit) != (tree.folder / edit.file).read_text()


@pytest.mark.timeout(LIMIT)
@pytest.mark.parametrize("suite", suites_of(MUTANTS), ids=str)
def test_a_suite_is_green_without_an_edit(suite: Suite, findings: Mapping[Suite | Mutant, Future[bool]]) -> None:
    assert findings[suite].result()


@pytest.mark.timeout(LIMIT)
@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_an_edit_is_noticed(mutant: Mutant, findings: Mapping[Suite | Mutant, Future[bool]]) -> None:
    assert findings[mutant].result()


A_ROW = "src/a.py | one | two | it breaks"


def a_list(folder: Path, *lines: str) -> Path:
    path = folder / "mutants.txt"
    path.write_text("\n".join(lines))
    return path


def test_a_list_is_read_line_by_line(tmp_path: Path) -> None:
    path = a_list(tmp_path, "# a note", "", "tests: tests/a.py tests/b.py", A_ROW)

    assert [Mutant(4, ("tests/a.py", "tests/b.py"), "src/a.py", "one", "two", "it breaks")] == read_mutants(path)


@pytest.mark.parametrize("lines", [(A_ROW,), ("tests: tests/a.py", "src/a.py | one | two")])
def test_a_line_that_is_no_entry_is_refused(lines: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(BadMutant, match="is not of the form"):
        read_mutants(a_list(tmp_path, *lines))


def a_small_tree(folder: Path, source: str) -> Tree:
    root = folder / "root"
    for name in ("src", "tests"):
        (root / name).mkdir(parents=True)
    (root / "src" / "a.py").write_text(source)
    (root / "tests" / "test_a.py").write_text("import a\n\n\ndef test_it() -> None:\n    assert a.VALUE == 1\n")
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (folder / "copy").mkdir()
    return Tree(folder / "copy", root=root)


def an_edit(text: str, replacement: str) -> Mutant:
    return Mutant(1, ("tests/test_a.py",), "src/a.py", text, replacement, "it breaks")


@pytest.mark.parametrize("source", ["VALUE = 2\n", "VALUE = 1\nOTHER = 1\n"])
def test_an_edit_that_does_not_fit_once_is_refused(source: str, tmp_path: Path) -> None:
    with pytest.raises(BadMutant, match=r"stands [02] times"):
        a_small_tree(tmp_path, source).judge(an_edit("= 1", "= 3"))


def test_an_edit_that_is_no_python_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadMutant, match="no Python"):
        a_small_tree(tmp_path, "VALUE = 1\n").judge(an_edit("= 1", "= "))


@pytest.mark.parametrize(
    ("edit", "verdict"),
    [(an_edit("= 1", "= 2"), Verdict.NOTICED), (an_edit("# note", "# nothing"), Verdict.SURVIVED)],
)
def test_an_edit_is_noticed_where_a_test_fails(edit: Mutant, verdict: Verdict, tmp_path: Path) -> None:
    tree = a_small_tree(tmp_path, "VALUE = 1  # note\n")

    assert verdict is tree.judge(edit)
    assert "VALUE = 1  # note\n" == (tree.folder / "src" / "a.py").read_text()


def test_the_copy_is_what_is_tested(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    (tmp_path / "tests" / "domain" / "test_place.py").write_text(
        f"import dtq\n\n\ndef test_it() -> None:\n    assert dtq.__file__.startswith({str(tmp_path)!r})\n"
    )

    assert tree.is_green(["tests/domain/test_place.py"], server="memory")


def test_tests_that_cannot_be_run_say_nothing(tmp_path: Path) -> None:
    tree = a_small_tree(tmp_path, "VALUE = 1\n")

    with pytest.raises(BadMutant, match="pytest ended with 4"):
        tree.is_green(["tests/missing.py"], server="memory")


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    one, again, other = (sampled(MUTANTS, count=5, seed=seed) for seed in ("a", "a", "b"))

    assert one == again
    assert one != other
