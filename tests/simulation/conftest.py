"""Options for `pytest tests/simulation`: how many seeds, from which one on, and whether all planted faults are made."""

from collections.abc import Iterator

import pytest

from tests.contract.run_mutants import sampled
from tests.mutants.ahead import parameters_of
from tests.simulation.campaign import quietly
from tests.simulation.run_planted import read_planted

SAMPLE = 4
"""How many planted faults are made unless all are asked for."""


@pytest.fixture(autouse=True)
def undisturbed() -> Iterator[None]:
    """Let what killed processes leave behind be cleared away with the test that has made it, and say nothing."""
    with quietly():
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seeds", type=int, default=1000, metavar="N", help="run N seeds within what is promised")
    parser.addoption("--from-seed", type=int, default=0, metavar="S", help="begin with this one")
    parser.addoption("--planted", action="store_true", help="make every planted fault instead of a sample")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--planted", None):
        return
    chosen = sampled(read_planted(), count=SAMPLE, seed="")
    left_out = [item for item in items if parameters_of(item).get("planted", chosen[0]) not in chosen]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
