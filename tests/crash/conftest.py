"""The fixtures of the crash matrix: one server and one nursery a process, a deployment of its own a cell."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.ground import Ground
from tests.crash.nursery import Nursery
from tests.judged.systems import SYSTEM, pytest_runtest_makereport
from tests.servers import RedisServer

__all__ = ["pytest_runtest_makereport"]


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Where processes come from."""
    with Nursery() as nursery:
        yield nursery


@pytest.fixture
def ground(
    redis_server: RedisServer, nursery: Nursery, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Ground]:
    """A deployment whose actor is in the test's hands."""
    with Ground(redis_server, folder=tmp_path, spawn=nursery.spawn) as ground:
        request.node.stash[SYSTEM] = ground.system
        yield ground
