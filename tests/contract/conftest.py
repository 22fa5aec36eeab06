"""The adapters that the suite runs on: those of DTQ_TEST_SERVER (tests/servers/choice.py)."""

from collections.abc import AsyncIterator
from functools import partial
from importlib import import_module
from typing import cast

import pytest

from dtq.ports.backend import BackendOptions
from tests.contract import memory_harness
from tests.contract.harness import Harness, OpenHarness
from tests.servers import adapters_under_test


@pytest.fixture(params=adapters_under_test())
def open_harness(request: pytest.FixtureRequest) -> OpenHarness:
    """Override this one to run the suite on another adapter."""
    if request.param == "memory":
        return memory_harness.open_harness
    # imported late: whoever tests the memory adapter needs no Redis client
    redis_harness = import_module("tests.contract.redis_harness")
    server = request.getfixturevalue("redis_server")
    return cast("OpenHarness", partial(redis_harness.open_restricted_harness, server=server))


@pytest.fixture
async def harness(open_harness: OpenHarness) -> AsyncIterator[Harness]:
    """An adapter over an empty broker; whatever a test does, nothing may be left without lifetime or bound."""
    async with open_harness(options=BackendOptions()) as opened:
        yield opened
        assert [] == list(await opened.unbounded())
