"""Each edit of planted.txt breaks a promise, and some seed of a thousand shows it."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.contract.run_mutants import Mutant, Tree
from tests.simulation.run_planted import JOBS, SEEDS, Catch, Grounds, read_planted

EDITS = read_planted()
FEWEST = 25
HOURS = 100_000


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return Tree(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="module")
def caught(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[Mutant, Future[Catch]]]:
    """What the chosen tests of this module ask for, found out by as many threads as there is room for."""
    grounds = Grounds(tmp_path_factory.mktemp("grounds"), copies=JOBS)
    chosen = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    edits = [params["planted"] for params in chosen if isinstance(params.get("planted"), Mutant)]
    with ThreadPoolExecutor(JOBS) as pool:
        yield {edit: pool.submit(grounds.judge, edit, seeds=SEEDS) for edit in edits}
        pool.shutdown(cancel_futures=True)


def test_the_list_is_long_enough() -> None:
    assert len(EDITS) >= FEWEST


@pytest.mark.parametrize("edit", EDITS, ids=str)
def test_an_edit_fits_in_exactly_one_place(edit: Mutant, tree: Tree) -> None:
    assert tree.edited(edit) != (tree.folder / edit.file).read_text()


@pytest.mark.timeout(HOURS)
@pytest.mark.parametrize("planted", EDITS, ids=str)
def test_an_edit_is_found(planted: Mutant, caught: Mapping[Mutant, Future[Catch]]) -> None:
    catch = caught[planted].result()

    assert catch.found is not None, f"no seed of {catch.seeds} shows that {planted.harm}"
