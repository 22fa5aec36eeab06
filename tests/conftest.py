"""What every test may use: anyio's backend, a real server for the run, Hypothesis profiles.

DTQ_TEST_SERVER names the server (tests/servers); unset, the best one at hand is taken.
"""

import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.servers import RedisServer, start_chosen, start_own

# deadlines measure the machine, not the code; a failing example is printed so that it can be replayed
settings.register_profile("dtq", deadline=None, print_blob=True)
settings.load_profile("dtq")


def pytest_configure() -> None:
    """Let Ctrl-C end what the tests start.

    A shell that runs the tests in the background has them, and every process that they start, ignore it.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """One server for the whole run: a test keeps to itself by its key prefix."""
    with start_chosen() as server:
        yield server


@pytest.fixture
def own_redis_server() -> Iterator[RedisServer]:
    """A server for this test alone, which it may kill, pause, fill and start again."""
    with start_own() as server:
        yield server
