"""The code of the guides to handlers and to their tests does what they say."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dtq.domain.task import QueueName, TaskId
from dtq.entrypoints.modules import load_registry
from dtq.handlers import Registry
from dtq.testing import App
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


def run(*command: str, folder: Path, **environment: str) -> str:
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
    assert 0 == done.returncode, done.stdout + done.stderr
    return done.stdout


def test_the_testing_guides_tests_pass_as_they_stand(tmp_path: Path) -> None:
    names = write_files_of("testing.md", tmp_path)

    output = run("-m", "pytest", "-q", "-p", "no:valkey", "-p", "no:cacheprovider", folder=tmp_path)

    assert {
        "my_tasks.py",
        "conftest.py",
        "test_my_tasks.py",
        "test_time.py",
        "test_async.py",
        "test_by_hand.py",
    } == names
    assert "6 passed" in output


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
