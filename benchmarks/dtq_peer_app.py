"""What the harness of the peers runs of dtq: the calls of a producer, and the task of a worker."""

from collections.abc import Iterable
from typing import Any

import common

from dtq import AsyncClient, Submission, TaskContext, task

FAST = "AsyncClient.submit_many of 100"

IN_THREADS = common.VARIANT == "sync"


@task("work_sync" if not IN_THREADS else "work")
def work_sync(payload: dict[str, Any], ctx: TaskContext) -> None:
    """Do what the harness measures, in a thread."""
    common.work(payload["i"], payload["x"])


@task("work_async" if IN_THREADS else "work")
async def work_async(payload: dict[str, Any], ctx: TaskContext) -> None:
    """Do what the harness measures."""
    await common.awork(payload["i"], payload["x"])


_clients: list[AsyncClient] = []


async def open() -> None:  # noqa: A001 - the harness names it
    """Make the client."""
    _clients.append(AsyncClient(common.URL, tasks=(work_sync, work_async)))


async def submit(number: int, payload: str) -> None:
    """Submit one task."""
    await _clients[-1].submit("work", {"i": number, "x": payload})


async def submit_many(numbers: Iterable[int], payload: str) -> None:
    """Submit many in one call."""
    await _clients[-1].submit_many([Submission("work", {"i": number, "x": payload}) for number in numbers])


async def close() -> None:
    """Let go of the client."""
    await _clients.pop().close()
