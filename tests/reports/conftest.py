"""The deployments of the judged tests, for what others have reported of their queues; their processes are forked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.nursery import Nursery
from tests.judged.sizes import FULL
from tests.judged.system import System
from tests.judged.systems import SYSTEM, pytest_runtest_makereport
from tests.servers import RedisServer, start_own

__all__ = ["pytest_runtest_makereport"]

HERE = Path(__file__).parent
FULL_GUARD_S = 1800


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests of this folder the time that the numbers of the reports take."""
    for item in items:
        if FULL and item.path.parent == HERE:
            item.add_marker(pytest.mark.timeout(FULL_GUARD_S), append=False)


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Where processes come from."""
    with Nursery() as nursery:
        yield nursery


@pytest.fixture
def system(
    redis_server: RedisServer, nursery: Nursery, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[System]:
    """A deployment on the server that the run shares: such a test leaves Redis alone."""
    with System(redis_server, folder=tmp_path, spawn=nursery.spawn) as system:
        request.node.stash[SYSTEM] = system
        yield system
        for key in system.redis.scan_iter(match=f"{system.prefix}:*", count=1000):
            system.redis.delete(key)


@pytest.fixture
def own_system(
    own_redis_server: RedisServer, nursery: Nursery, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[System]:
    """A deployment on a server of its own, which the test may harm."""
    with System(own_redis_server, folder=tmp_path, spawn=nursery.spawn) as system:
        request.node.stash[SYSTEM] = system
        yield system


@pytest.fixture
def durable_system(nursery: Nursery, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[System]:
    """A deployment of its own whose Redis has on disk whatever it has answered."""
    with start_own(appendfsync="always") as server, System(server, folder=tmp_path, spawn=nursery.spawn) as system:
        request.node.stash[SYSTEM] = system
        yield system


@pytest.fixture
def fresh_system(redis_server: RedisServer, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[System]:
    """A deployment whose processes are started anew, for tests of how they start."""
    with System(redis_server, folder=tmp_path) as system:
        request.node.stash[SYSTEM] = system
        yield system
        for key in system.redis.scan_iter(match=f"{system.prefix}:*", count=1000):
            system.redis.delete(key)
