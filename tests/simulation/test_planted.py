"""Each edit of planted.txt breaks a promise, and some seed of a thousand shows it."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future

import pytest

from tests.contract.run_mutants import Mutant
from tests.mutants.ahead import found_ahead
from tests.simulation.run_planted import JOBS, SEEDS, Catch, Grounds, read_planted

HOURS = 100_000


@pytest.fixture(scope="module")
def caught(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[Mutant, Future[Catch]]]:
    """What the chosen tests of this module ask for, found out by as many threads as there is room for."""
    grounds = Grounds(tmp_path_factory.mktemp("grounds"), copies=JOBS)

    def judge(planted: Mutant) -> Catch:
        return grounds.judge(planted, seeds=SEEDS)

    with found_ahead(request.session.items, jobs=JOBS, ways={"planted": judge}) as found:
        yield found


@pytest.mark.timeout(HOURS)
@pytest.mark.parametrize("planted", read_planted(), ids=str)
def test_an_edit_is_found(planted: Mutant, caught: Mapping[Mutant, Future[Catch]]) -> None:
    catch = caught[planted].result()

    assert catch.found is not None, f"no seed of {catch.seeds} shows that {planted.harm}"
