"""Options for `pytest tests/chaos`: which seeds, how much work, how many workers, how long, and in which mode."""

from typing import Any, Final

import pytest

DEFAULTS: Final[dict[str, Any]] = {
    "seed": 1,
    "seeds": 1,
    "tasks": 1000,
    "workers": 3,
    "minutes": None,
    "mode": "within",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("chaos")
    group.addoption("--seed", type=int, default=DEFAULTS["seed"], metavar="N", help="the first seed to run")
    group.addoption("--seeds", type=int, default=DEFAULTS["seeds"], metavar="K", help="run K seeds in a row")
    group.addoption("--tasks", type=int, default=DEFAULTS["tasks"], metavar="N", help="how many tasks are submitted")
    group.addoption("--workers", type=int, default=DEFAULTS["workers"], metavar="N", help="how many workers, 3 to 12")
    group.addoption("--minutes", type=float, metavar="M", help="go on for so long; without it, each fault comes once")
    group.addoption("--mode", choices=("within", "beyond"), default=DEFAULTS["mode"], help="what may go wrong")


@pytest.fixture
def options(pytestconfig: pytest.Config) -> dict[str, Any]:
    """What was asked for; where the options are not known, because the whole of tests is run, the defaults."""
    return {name: pytestconfig.getoption(name, default) for name, default in DEFAULTS.items()}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "chaos_seed" in metafunc.fixturenames:
        option = metafunc.config.getoption
        first = option("seed", DEFAULTS["seed"])
        metafunc.parametrize("chaos_seed", range(first, first + option("seeds", DEFAULTS["seeds"])))
