from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest

from tests.integration.deployment import Deployment, Diary
from tests.servers import RedisServer

Deploy = Callable[..., Deployment]


@pytest.fixture
def deploy(redis_server: RedisServer, tmp_path: Path) -> Iterator[Deploy]:
    """Deploy dtq, on the run's own server where no other is given, under a prefix of its own."""
    with ExitStack() as stack:

        def make(server: RedisServer = redis_server, **settings: str) -> Deployment:
            prefix = f"dtq-{uuid4().hex[:12]}"
            folder = tmp_path / prefix
            folder.mkdir()
            return stack.enter_context(Deployment(server, prefix=prefix, folder=folder, settings=settings))

        yield make


@pytest.fixture
def deployment(deploy: Deploy) -> Deployment:
    return deploy()


@pytest.fixture
def diary(tmp_path: Path) -> Diary:
    return Diary(tmp_path / "diary")
