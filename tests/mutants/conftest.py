"""Options for `pytest tests/mutants`: without them every edit of the list is judged."""

import pytest

from tests.contract.run_mutants import read_mutants, sampled, suites_of
from tests.mutants.ahead import parameters_of


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--sample", type=int, metavar="N", help="judge N edits of the list only")
    parser.addoption("--seed", default="", help="which N")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    count = config.getoption("--sample", None)
    if count is None:
        return
    mutants = sampled(read_mutants(), count=count, seed=config.getoption("--seed"))
    chosen = {*mutants, *suites_of(mutants)}
    left_out = [item for item in items if not _asked_of(item) <= chosen]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def _asked_of(item: pytest.Item) -> set[object]:
    return {value for name, value in parameters_of(item).items() if name in {"mutant", "suite"}}
