"""Commands in one process with their test, on a backend that they share through a third party's URL."""

import asyncio
import io
import json
from collections.abc import Callable
from typing import Any

from dtq.domain.outcome import Outcome
from dtq.entrypoints.cli import main
from dtq.ports.backend import Backend
from tests.entrypoints.driver import finish_with, start_next

Printed = Callable[[], tuple[str, str]]


def submit(*arguments: str, payload: str = '{"a": 1}') -> int:
    return main(["submit", "--type", "greet", "--payload", payload, *arguments])


def submitted(printed: Printed, *arguments: str) -> str:
    assert 0 == submit("--json", *arguments)
    task_id: str = json.loads(printed()[0])["task_id"]
    return task_id


def end(backend: Backend, outcome: Outcome, *, queue: str = "default") -> None:
    async def both() -> None:
        await finish_with(backend, await start_next(backend, queue=queue), outcome)

    asyncio.run(both())


def document(printed: Printed) -> Any:
    return json.loads(printed()[0])


class Terminal(io.StringIO):
    """Somebody at a terminal, who answers with what they were made with."""

    def isatty(self) -> bool:
        return True
