"""The code of the guides to handlers and to their tests does what they say."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dtq.domain.admission import (
    DEFAULT_MAX_ATTEMPTS,
    DEFAULT_PRIORITY,
    MAX_DELAY_S,
    MAX_METADATA_BYTES,
    MAX_TIMEOUT_MS,
    QUEUE_PATTERN,
)
from dtq.domain.status import TaskStatus
from dtq.domain.task import QueueName, TaskId
from dtq.entrypoints.client.results import Options, TaskState
from dtq.entrypoints.modules import load_registry
from dtq.handlers import Registry
from dtq.testing import App, context
from tests.servers import RedisServer

DOCS = Path(__file__).resolve().parents[2] / "docs"


def write_files_of(document: str, folder: Path) -> set[str]:
    """Write the files that a document shows; blocks of one name are one file."""
    blocks = re.findall(r"```python\n# (\w+\.py)\n(.*?)```", (DOCS / document).read_text(), re.DOTALL)
    for name, code in blocks:
        with (folder / name).open("a") as file:
            file.write(code)
    return {name for name, _ in blocks}


def test_every_block_of_the_guides_names_its_file() -> None:
    for document in ("handlers.md", "testing.md"):
        assert [] == re.findall(r"```python\n(?!# \w+\.py\n).*", (DOCS / document).read_text())


def run(*command: str, folder: Path, returns: int = 0, **environment: str) -> str:
    ours = {name: text for name, text in os.environ.items() if not name.startswith("DTQ_")}  # noqa: TID251 - of a process
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**ours, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert returns == done.returncode, done.stdout + done.stderr
    return done.stdout


def test_the_testing_guides_tests_pass_as_they_stand(tmp_path: Path) -> None:
    names = write_files_of("testing.md", tmp_path)

    output = run("-m", "pytest", "-q", "-p", "no:cacheprovider", folder=tmp_path)

    assert {
        "my_tasks.py",
        "conftest.py",
        "test_my_tasks.py",
        "test_time.py",
        "test_errors.py",
        "signup_tasks.py",
        "test_signup.py",
        "once_tasks.py",
        "test_once.py",
        "test_async.py",
        "test_settings.py",
        "test_by_hand.py",
    } == names
    assert "11 passed" in output


def test_a_failing_test_shows_where_its_handler_broke(tmp_path: Path) -> None:
    (tmp_path / "broken_tasks.py").write_text(
        "from dtq import task\n\n\n@task('broken')\ndef broken(payload, ctx):\n    return payload['nothing']\n"
    )
    (tmp_path / "test_broken.py").write_text(
        "def test_it(dtq_sync_app):\n    dtq_sync_app.client.submit('broken')\n"
        "    assert dtq_sync_app.drain()[0].succeeded\n"
    )

    output = run(
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "dtq_task_modules=broken_tasks"),
        folder=tmp_path,
        returns=1,
    )

    assert re.search(
        r"Captured log call.*broken_tasks\.py\", line 6, in broken\n.*\nKeyError: 'nothing'", output, re.DOTALL
    )


def test_a_test_without_tasks_says_where_they_are_named(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(dtq_sync_app): ...\n")

    output = run("-m", "pytest", "-q", "-p", "no:cacheprovider", folder=tmp_path, returns=1)

    assert "ValueError: there are no tasks: [] has no function" in output


def test_the_handlers_guides_client_submits(tmp_path: Path, redis_server: RedisServer) -> None:
    write_files_of("handlers.md", tmp_path)
    script = tmp_path / "submit_orders.py"
    script.write_text(script.read_text().replace("redis://localhost:6379/0", redis_server.url))

    output = run("submit_orders.py", folder=tmp_path, DTQ_KEY_PREFIX=f"guide-{id(tmp_path)}")

    expected = ["queued", "payload.user.age: expected `int` >= 0", "Submitted", "Submitted", "cancelled"]
    assert expected == output.splitlines()


@pytest.fixture
def dtq_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    write_files_of("handlers.md", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "shop_tasks", raising=False)
    return load_registry(["shop_tasks"])


@pytest.mark.parametrize(
    ("task_type", "payload", "result"),
    [
        ("greet", {"name": "Ada"}, "{'text': 'Hello, Ada!'}"),
        ("order", {"user": {"name": "Ada", "age": 36}, "items": ["a"]}, "Ada: 1"),
        ("charge", {"cents": 5, "bank": "open"}, "charged in attempt 1"),
        ("charge", {"cents": 5, "bank": "closed"}, "charged in attempt 2"),
        ("charge", {"cents": 5, "bank": "away"}, "charged in attempt 2"),
        ("count", {"steps": 7}, "7"),
        ("send_mail", {"to": "ada@example.org"}, "mail to ada@example.org"),
    ],
)
async def test_the_handlers_guides_tasks_do_what_it_says(
    dtq_app: App, task_type: str, payload: dict[str, Any], result: str
) -> None:
    await dtq_app.client.submit(task_type, payload)

    (ended,) = await dtq_app.drain()

    assert result == str(ended.result), ended


async def test_the_handlers_guide_names_what_is_permanent(dtq_app: App) -> None:
    await dtq_app.client.submit("charge", {"cents": 0, "bank": "open"})
    await dtq_app.client.submit("charge", {"bank": "open"})
    await dtq_app.client.submit("count", {"steps": 1}, timeout_ms=999, max_attempts=1)

    ended = await dtq_app.drain()

    assert ["PermanentError", "KeyError", "RetryableError"] == [task.error_class for task in ended]
    assert {1} == {task.attempt for task in ended}


async def test_the_handlers_guides_payment_is_made_once(dtq_app: App, redis_server: RedisServer) -> None:
    await dtq_app.client.submit("pay_once", {"cents": 5, "redis_url": redis_server.url})

    (ended,) = await dtq_app.drain()

    assert "receipt for 5" == ended.result


async def test_the_handlers_guides_handler_submits_once(dtq_app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    shop_tasks: Any = sys.modules["shop_tasks"]
    monkeypatch.setattr(shop_tasks, "client", lambda: dtq_app.sync_client)
    await dtq_app.client.submit("sign_up", {"email": "ada@example.org"})

    signed_up, mailed = await dtq_app.drain()

    assert (mailed.task_id, "mail to ada@example.org") == (signed_up.result, mailed.result)


def test_the_handlers_guides_handler_submits_in_a_worker(
    dtq_tasks: Registry, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    del dtq_tasks
    monkeypatch.setenv("DTQ_REDIS_URL", redis_server.url)
    monkeypatch.setenv("DTQ_KEY_PREFIX", f"guide-{id(monkeypatch)}")
    shop_tasks: Any = sys.modules["shop_tasks"]

    first = shop_tasks.sign_up({"email": "ada@example.org"}, context())
    again = shop_tasks.sign_up({"email": "ada@example.org"}, context(attempt=2))

    with shop_tasks.client() as client:
        assert first == again == client.get(first).task_id


def test_the_handlers_guide_names_every_option_field_and_status() -> None:
    guide = (DOCS / "handlers.md").read_text()
    bounds = f"{MAX_TIMEOUT_MS} {MAX_DELAY_S} {MAX_METADATA_BYTES} {DEFAULT_MAX_ATTEMPTS} {DEFAULT_PRIORITY}"

    assert [] == [name for name in Options.__annotations__ if f"\n| `{name}` | " not in guide]
    assert [] == [name for name in TaskState.__struct_fields__ if f"`{name}`" not in guide]
    assert [] == [status for status in TaskStatus if f'`"{status}"`' not in guide]
    assert [] == [bound for bound in bounds.split() if not re.search(rf"\| (1 to |0 to |.* of )?{bound}\b", guide)]
    assert f"`{QUEUE_PATTERN.pattern}`" in guide


async def test_a_payload_that_is_none_any_more_ends_its_task(dtq_app: App) -> None:
    submitted = await dtq_app.client.submit("order", {"user": {"name": "Ada", "age": 36}})
    state: Any = dtq_app._broker._state  # type: ignore[attr-defined]  # noqa: SLF001 - as if another version had written it
    entries = state.queues[QueueName("default")].bands[5].entries
    assert state.task(TaskId(submitted.task_id)) is not None
    for fields in entries.values():
        fields["payload"] = '{"user": {}}'

    (ended,) = await dtq_app.drain()

    assert "PayloadNotDecodable" == ended.error_class
    assert "payload.user.name: required" == ended.error_message
