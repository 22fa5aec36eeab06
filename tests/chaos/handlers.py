"""Task types that count what they do in a store of their own: a file that outlives process and broker."""

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any, Final

from dtq import PermanentError, RetryableError, TaskContext, task
from tests.judged.journal import PATH_VARIABLE

STORE: Final = "effects"
"""The name of the store, beside the journal of the judged tests."""

Payload = dict[str, Any]


def store_of(journal: Path) -> Path:
    """Where the effects of a deployment are kept, whose judged journal is *journal*."""
    return journal.with_name(STORE)


def _note(payload: Payload, ctx: TaskContext, *, outcome: str) -> None:
    """Append a line; whole, since a short append to a local file is one act."""
    line = {
        "at": time.time(),
        "task_id": ctx.task_id,
        "number": payload["n"],
        "attempt": ctx.attempt,
        "who": ctx.worker_id,
        "kind": payload.get("kind", "ok"),
        "outcome": outcome,
    }
    path = store_of(Path(os.environ[PATH_VARIABLE]))
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, (json.dumps(line) + "\n").encode())
    finally:
        os.close(descriptor)


def _end(payload: Payload, ctx: TaskContext) -> Payload:
    """End as the payload has it."""
    match payload.get("kind", "ok"):
        case "retry" if ctx.attempt <= payload["fails"]:
            _note(payload, ctx, outcome="RetryableError")
            raise RetryableError("told to fail")
        case "permanent":
            _note(payload, ctx, outcome="PermanentError")
            raise PermanentError("told to fail for good")
        case _:
            _note(payload, ctx, outcome="ok")
            return {"n": payload["n"], "attempt": ctx.attempt}


@task("work")
async def work(payload: Payload, ctx: TaskContext) -> Payload:
    """Takes ``seconds``, then ends as ``kind`` has it."""
    _note(payload, ctx, outcome="")
    try:
        await asyncio.sleep(payload.get("seconds", 0))
    except asyncio.CancelledError:
        _note(payload, ctx, outcome="CancelledError")
        raise
    return _end(payload, ctx)


@task("work_in_thread")
def work_in_thread(payload: Payload, ctx: TaskContext) -> Payload:
    """The same, where nobody can stop it."""
    _note(payload, ctx, outcome="")
    time.sleep(payload.get("seconds", 0))
    return _end(payload, ctx)
