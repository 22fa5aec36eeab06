"""Task types that behave well, badly, and as a test tells them by opening a gate, which is a file."""

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

from redis.exceptions import ConnectionError as RedisConnectionError

from dtq import PermanentError, RetryableError, TaskContext, task
from tests.judged import journal

POLL_S = 0.01

Payload = dict[str, Any]


def gate_path(name: str) -> Path:
    return Path(os.environ[journal.PATH_VARIABLE]).with_name(f"gate-{name}")


@task("echo")
async def echo(payload: Payload, ctx: TaskContext) -> Payload:
    journal.write(ctx, "start")
    return payload


@task("brief")
async def brief(payload: Payload, ctx: TaskContext) -> Payload:
    """Takes ``seconds``, and fails retryably in the first ``fails`` attempts."""
    journal.write(ctx, "start")
    await asyncio.sleep(payload.get("seconds", 0))
    if ctx.attempt <= payload.get("fails", 0):
        journal.write(ctx, "raise")
        raise RetryableError("not yet")
    journal.write(ctx, "end")
    return {"attempt": ctx.attempt}


@task("brief_sync")
def brief_sync(payload: Payload, ctx: TaskContext) -> Payload:
    journal.write(ctx, "start")
    time.sleep(payload.get("seconds", 0))
    journal.write(ctx, "end")
    return {"attempt": ctx.attempt}


@task("hopeless")
async def hopeless(payload: Payload, ctx: TaskContext) -> None:
    del payload
    journal.write(ctx, "start")
    raise PermanentError("it never works")


@task("gated")
async def gated(payload: Payload, ctx: TaskContext) -> Payload:
    """Waits at the gate of its attempt; fails retryably in the attempts of ``fails``."""
    journal.write(ctx, "start")
    try:
        while not gate_path(f"{payload['gate']}-{ctx.attempt}").exists():  # noqa: ASYNC110 - another process opens it
            await asyncio.sleep(POLL_S)
    except asyncio.CancelledError:
        journal.write(ctx, "cancelled")
        raise
    journal.write(ctx, "end")
    if ctx.attempt in payload.get("fails", []):
        raise RetryableError("told to fail")
    return {"attempt": ctx.attempt}


@task("gated_sync")
def gated_sync(payload: Payload, ctx: TaskContext) -> Payload:
    journal.write(ctx, "start")
    while not gate_path(f"{payload['gate']}-{ctx.attempt}").exists():
        time.sleep(POLL_S)
    journal.write(ctx, "end")
    if ctx.attempt in payload.get("fails", []):
        raise RetryableError("told to fail")
    return {"attempt": ctx.attempt}


@task("stubborn")
async def stubborn(payload: Payload, ctx: TaskContext) -> Payload:
    """Swallows its cancellation and returns a value after it."""
    del payload
    journal.write(ctx, "start")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        journal.write(ctx, "cancelled")
    return {"attempt": ctx.attempt}


@task("poison")
async def poison(payload: Payload, ctx: TaskContext) -> None:
    """Kills its own process."""
    del payload
    journal.write(ctx, "start")
    os.kill(os.getpid(), signal.SIGKILL)


@task("block_loop")
async def block_loop(payload: Payload, ctx: TaskContext) -> Payload:
    journal.write(ctx, "start")
    time.sleep(payload["seconds"])  # noqa: ASYNC251 - blocking the loop is what this handler is for
    journal.write(ctx, "end")
    return {"attempt": ctx.attempt}


@task("lose_connection")
async def lose_connection(payload: Payload, ctx: TaskContext) -> Payload:
    """Loses a connection to a Redis of its own in the first attempt."""
    del payload
    journal.write(ctx, "start")
    if ctx.attempt == 1:
        raise RedisConnectionError("the handler's own Redis is gone")
    return {"attempt": ctx.attempt}
