"""Task types that get into the troubles of other queues: busy ones, broken ones, and ones that defy a cancel."""

import asyncio
import time
from typing import Any

from dtq import PermanentError, RetryableError, TaskContext, task
from tests.judged import journal
from tests.judged.handlers import POLL_S, gate_path

Payload = dict[str, Any]


@task("burn")
def burn(payload: Payload, ctx: TaskContext) -> Payload:
    """Computes for so many seconds, in pure Python, in a thread beside the event loop's."""
    journal.write(ctx, "start")
    ends_at, rounds = time.monotonic() + payload["seconds"], 0
    while time.monotonic() < ends_at:
        rounds += sum(range(1000)) > 0
    journal.write(ctx, "end")
    return {"rounds": rounds}


@task("mended")
async def mended(payload: Payload, ctx: TaskContext) -> Payload:
    """Fails for good until somebody mends what it needs; then waits at its gate."""
    journal.write(ctx, "start")
    name = payload["gate"]
    if not gate_path(f"{name}-mended").exists():
        raise PermanentError("what it needs is broken")
    while not gate_path(f"{name}-open").exists():  # noqa: ASYNC110 - another process opens it
        await asyncio.sleep(POLL_S)
    journal.write(ctx, "end")
    return {"attempt": ctx.attempt}


@task("relapse")
async def relapse(payload: Payload, ctx: TaskContext) -> None:
    """Answers its cancellation with an error that asks to be tried again."""
    del payload
    journal.write(ctx, "start")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        journal.write(ctx, "cancelled")
        raise RetryableError("interrupted, so try again") from None
