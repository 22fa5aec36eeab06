"""Options for `pytest tests/simulation`: how many seeds, from which one on, and whether all planted faults are made."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seeds", type=int, default=1000, metavar="N", help="run N seeds within what is promised")
    parser.addoption("--from-seed", type=int, default=0, metavar="S", help="begin with this one")
    parser.addoption("--planted", action="store_true", help="make every planted fault instead of a sample")
