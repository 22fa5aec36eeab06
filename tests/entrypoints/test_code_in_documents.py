"""The code that documents and examples show does what they say."""

import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from dtq import PermanentError, TaskContext
from dtq.application.tasks import TaskService
from dtq.domain.task import QueueName, TaskId, WorkerId
from dtq.entrypoints.modules import load_registry
from dtq.handlers import Registry
from tests.servers import RedisServer

ROOT = Path(__file__).resolve().parents[2]


def code_of(document: str) -> list[str]:
    """The Python that a document shows, block by block."""
    return re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)


def context(*, attempt: int = 1, task_id: str = "0" * 32) -> TaskContext:
    return TaskContext(
        task_id=TaskId(task_id),
        idempotency_key=None,
        attempt=attempt,
        worker_id=WorkerId("worker-00000001"),
        queue=QueueName("default"),
        deadline=datetime(2026, 1, 1, tzinfo=UTC),
        seconds_left=lambda: 1.0,
    )


def loaded(folder: Path, module: str, monkeypatch: pytest.MonkeyPatch) -> Registry:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, module, raising=False)
    registry = load_registry([module])
    monkeypatch.delitem(sys.modules, module)
    return registry


async def run(registry: Registry, name: str, payload: dict[str, Any], ctx: TaskContext) -> Any:
    handler = registry.get(name)
    assert handler is not None
    returned: Any = handler.function(payload, ctx)
    return await returned


async def test_the_task_of_the_readme_greets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = code_of("README.md")
    (tmp_path / "my_tasks.py").write_text(code)

    registry = loaded(tmp_path, "my_tasks", monkeypatch)

    assert {"text": "Hello, Ada!", "attempt": 1} == await run(registry, "greet", {"name": "Ada"}, context())
    with pytest.raises(PermanentError, match="no name"):
        await run(registry, "greet", {}, context())


def test_the_readmes_commands_name_what_the_readme_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "README.md").read_text()

    assert "greet" in loaded(ROOT, "examples.my_tasks", monkeypatch).task_types
    assert "dtq worker run --tasks examples.my_tasks --queue greetings\n" in text
    assert "dtq submit --tasks examples.my_tasks --queue greetings --type greet --payload" in text


def test_the_override_of_the_backend_works_as_it_is_shown() -> None:
    names: dict[str, Any] = {}

    for code in code_of("docs/writing-an-adapter.md"):
        exec(code, names)  # noqa: S102 - our own document

    assert isinstance(names["tasks"], TaskService)


async def test_the_example_charges_once_whatever_becomes_of_the_attempts(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DTQ_REDIS_URL", redis_server.url)
    registry = loaded(ROOT / "examples", "charge_once", monkeypatch)
    task_id = f"example-{id(monkeypatch)}"

    answers = [
        await run(registry, "charge", {"amount": 5}, context(attempt=attempt, task_id=task_id)) for attempt in (1, 2)
    ]

    assert [{"receipt": "5 paid in attempt 1", "attempt": number} for number in (1, 2)] == answers
    with Redis.from_url(redis_server.url) as client:
        client.delete(f"dtq:op:{task_id}")
