"""The deployments that the suite attacks, each for the whole run: one without a key, one with."""

from collections.abc import Iterator

import pytest

from tests.judged.systems import pytest_runtest_makereport, system
from tests.security.site import KEY, Site, standing
from tests.servers import RedisServer, start_own

__all__ = ["alone", "guarded", "pytest_runtest_makereport", "site", "system"]


@pytest.fixture(scope="session")
def site(redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A deployment that is open, and logs text."""
    with standing(redis_server, folder=tmp_path_factory.mktemp("open"), settings={}) as site:
        yield site


@pytest.fixture(scope="session")
def guarded(redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A deployment with a key, which logs JSON."""
    settings = {"DTQ_API_KEY": KEY, "DTQ_LOG_JSON": "true"}
    with standing(redis_server, folder=tmp_path_factory.mktemp("guarded"), settings=settings) as site:
        yield site


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A deployment that is open, on a server that nobody else uses: every key and command there is its own."""
    with start_own() as server, standing(server, folder=tmp_path_factory.mktemp("alone"), settings={}) as site:
        yield site
