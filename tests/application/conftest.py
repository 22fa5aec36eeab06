"""A world for each test."""

from collections.abc import AsyncIterator

import pytest

from tests.application import handlers
from tests.application.world import World


@pytest.fixture
async def world() -> AsyncIterator[World]:
    handlers.forget_all()
    world = World()
    yield world
    handlers.let_all_go()
    await world.close()
