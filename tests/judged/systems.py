"""The fixtures of judged tests: whole deployments, whose processes' logs are shown when a test fails."""

from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from tests.judged.system import System
from tests.servers import RedisServer, start_own

Record = Callable[[str, object], None]
"""The type of pytest's record_testsuite_property: judged figures stand in the report of a run."""

TAIL = 4000
SYSTEM = pytest.StashKey[System]()


@pytest.fixture
def system(redis_server: RedisServer, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[System]:
    """A deployment on the server that the run shares: such a test leaves Redis alone."""
    with System(redis_server, folder=tmp_path) as system:
        request.node.stash[SYSTEM] = system
        yield system
        for key in system.redis.scan_iter(match=f"{system.prefix}:*", count=1000):
            system.redis.delete(key)


@pytest.fixture
def own_system(own_redis_server: RedisServer, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[System]:
    """A deployment on a server of its own, which the test may harm."""
    with System(own_redis_server, folder=tmp_path) as system:
        request.node.stash[SYSTEM] = system
        yield system


@pytest.fixture
def durable_system(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[System]:
    """A deployment of its own whose Redis has on disk whatever it has answered."""
    with start_own(appendfsync="always") as server, System(server, folder=tmp_path) as system:
        request.node.stash[SYSTEM] = system
        yield system


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of each log with the failure."""
    report = yield
    system = item.stash.get(SYSTEM, None)
    if report.failed and system is not None:
        for program in system.programs:
            report.sections.append((f"log of {program.name}", program.log[-TAIL:]))
    return report
