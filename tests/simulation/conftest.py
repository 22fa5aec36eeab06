"""Options for `pytest tests/simulation`: how many seeds, from which one on, and whether all planted faults are made."""

from collections.abc import Iterator

import pytest

from tests.contract.run_mutants import Mutant, sampled
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
    chosen = set(sampled(read_planted(), count=SAMPLE, seed=""))
    left_out = [item for item in items if (planted := _planted_by(item)) is not None and planted not in chosen]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def _planted_by(item: pytest.Item) -> Mutant | None:
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    planted = parameters.get("planted")
    return planted if isinstance(planted, Mutant) else None
