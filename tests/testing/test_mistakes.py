"""What a test gets wrong is told in its own words, and nothing half-done is left."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest

from dtq import UnknownTaskType
from dtq.entrypoints.config import SettingsError
from dtq.entrypoints.modules import TaskModuleError
from dtq.testing import App, SyncApp
from tests.testing import example_tasks
from tests.testing.example_tasks import Greeting


@pytest.fixture
def dtq_tasks() -> object:
    return example_tasks


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"DTQ_MAX_ATEMPTS": "1"}, "DTQ_MAX_ATEMPTS is no setting of dtq; DTQ_MAX_ATTEMPTS is"),
        ({"max_attempts": "1"}, "max_attempts is no setting of dtq; DTQ_MAX_ATTEMPTS is"),
        ({"DTQ_COLOR": "1"}, "DTQ_COLOR is no setting of dtq$"),
        ({"DTQ_MAX_ATTEMPTS": 1}, "DTQ_MAX_ATTEMPTS must be given as text, '1'"),
        ({"DTQ_MAX_ATTEMPTS": "0"}, "DTQ_MAX_ATTEMPTS='0': must be an integer"),
    ],
)
def test_settings_that_are_none_are_refused_by_name(settings: Any, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        App(example_tasks, settings=settings)


@pytest.mark.parametrize(
    "tasks",
    [
        example_tasks,
        [example_tasks],
        "tests.testing.example_tasks",
        ["tests.testing.example_tasks"],
        example_tasks.greet,
        [example_tasks.greet],
    ],
)
def test_tasks_are_modules_or_their_names_or_functions(tasks: Any) -> None:
    with SyncApp(tasks) as app:
        assert app.client.submit("greet", {"name": "Ada"}).task_id


@pytest.mark.parametrize("tasks", [[], None, ModuleType("empty"), [ModuleType("empty")]])
def test_an_app_without_tasks_says_what_to_return(tasks: Any) -> None:
    with pytest.raises(ValueError, match=r"there are no tasks: .*fixture dtq_tasks.*dtq_task_modules"):
        SyncApp(tasks)


@pytest.mark.parametrize("tasks", [5, [5], [None]])
def test_what_is_no_task_is_refused_in_words(tasks: Any) -> None:
    with pytest.raises(TypeError, match="is neither a task module, nor the name of one, nor a function with @task"):
        SyncApp(tasks)


def test_a_module_that_is_not_there_is_named() -> None:
    with pytest.raises(TaskModuleError, match="'no_such_tasks' cannot be imported"):
        SyncApp("no_such_tasks")


async def test_time_goes_forward_by_timedeltas(dtq_app: App) -> None:
    with pytest.raises(ValueError, match="advance moves the clock forward, not by -1 day"):
        await dtq_app.advance(timedelta(days=-1))
    for by in (60, 1.5, None):
        with pytest.raises(TypeError, match=r"advance takes a timedelta, such as timedelta\(seconds=60\), not"):
            await dtq_app.advance(by)  # type: ignore[arg-type]  # the mistake itself


@pytest.mark.parametrize("ask", ["assert_enqueued", "enqueued"])
def test_a_misspelt_task_type_is_no_assertion(dtq_sync_app: SyncApp, ask: str) -> None:
    with pytest.raises(UnknownTaskType, match="'gret'") as error:
        getattr(dtq_sync_app, ask)("gret")

    assert [
        "known here are: broken_in_thread, cancels_itself, flaky, greet, greet_in_thread, hang, never, no_json"
    ] == error.value.__notes__
    with pytest.raises(UnknownTaskType):
        dtq_sync_app.assert_enqueued("gret", count=0)


@dataclass
class GreetingAsDataclass:
    name: str
    times: int = 1


class OtherGreeting(Greeting, kw_only=True):
    loud: bool


@pytest.mark.parametrize(
    ("payload", "matches"),
    [
        (Greeting(name="Ada"), True),
        (Greeting(name="Ada", times=2), False),
        (GreetingAsDataclass(name="Ada"), True),
        (OtherGreeting(name="Ada", loud=True), False),
        ({"name": "Ada"}, True),
        ({"name": "Ada", "times": 1}, False),
        ({}, False),
        (5, False),
    ],
    ids=repr,
)
def test_payloads_are_compared_as_what_they_are(dtq_sync_app: SyncApp, payload: Any, *, matches: bool) -> None:
    dtq_sync_app.client.submit("greet", {"name": "Ada"})

    assert matches == bool(dtq_sync_app.enqueued("greet", payload=payload))


async def test_a_plain_app_in_an_async_test_is_refused_before_anything_is_done(dtq_sync_app: SyncApp) -> None:
    calls: list[Callable[[], object]] = [
        lambda: dtq_sync_app.client.submit("greet", {"name": "Ada"}),
        dtq_sync_app.drain,
        dtq_sync_app.run_due,
        lambda: dtq_sync_app.advance(timedelta(1)),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match="dtq_sync_app is for tests without an event loop: use dtq_app here"):
            call()

    assert [] == dtq_sync_app.enqueued()


def test_a_plain_app_is_closed_by_its_block() -> None:
    with SyncApp(example_tasks) as app:
        app.client.submit("greet", {"name": "Ada"})
        assert 1 == len(app.drain())


async def test_an_app_is_closed_by_its_block() -> None:
    async with App(example_tasks) as app:
        await app.client.submit("greet_in_thread", {"name": "Ada"})
        assert 1 == len(await app.drain())


def test_help_shows_what_an_app_has() -> None:
    for kind in (App, SyncApp):
        assert {"client", "now", "errors", "enqueued", "assert_enqueued", "drain", "run_due", "advance"} <= set(
            dir(kind)
        )
