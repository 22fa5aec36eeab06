"""The fixtures that pytest offers wherever dtq is installed."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Union, cast

import pytest

if TYPE_CHECKING:
    from dtq.entrypoints.client.direct import Tasks
    from dtq.handlers.registry import Registry
    from dtq.testing import App, SyncApp

_MODULES = "dtq_task_modules"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a project name its task modules once."""
    parser.addini(_MODULES, "the task modules that dtq_app and dtq_sync_app know", type="args", default=[])


@pytest.fixture
def dtq_tasks(pytestconfig: pytest.Config) -> Union["Tasks", "Registry"]:
    """The tasks that can be submitted: those of the ini option dtq_task_modules; override it to return others."""
    return cast("list[str]", pytestconfig.getini(_MODULES))


@pytest.fixture
def dtq_settings() -> Mapping[str, str]:
    """DTQ_ settings of the app, by default none; override it to return others."""
    return {}


@pytest.fixture
def dtq_app(dtq_tasks: Union["Tasks", "Registry"], dtq_settings: Mapping[str, str]) -> Iterator["App"]:
    """A whole dtq in memory, for async tests."""
    from dtq.testing import App

    app = App(dtq_tasks, settings=dtq_settings)
    yield app
    app.close()


@pytest.fixture
def dtq_sync_app(dtq_tasks: Union["Tasks", "Registry"], dtq_settings: Mapping[str, str]) -> Iterator["SyncApp"]:
    """A whole dtq in memory, for tests without an event loop."""
    from dtq.testing import SyncApp

    with SyncApp(dtq_tasks, settings=dtq_settings) as app:
        yield app
