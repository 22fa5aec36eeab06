"""Tasks that do to a worker what the world does to it; each start is a line in the diary that the payload names."""

import asyncio
import os
import signal
import time
from collections.abc import Mapping
from typing import Any

from redis import exceptions

from dtq import PermanentError, RetryableError, TaskContext, task

JsonObject = dict[str, Any]
POLL_S = 0.01


def note(payload: Mapping[str, Any], ctx: TaskContext) -> None:
    """Write one line, in one system call, so that lines of different processes do not mix."""
    if "diary" in payload:
        line = f"{ctx.task_id} {ctx.attempt} {os.getpid()} {time.monotonic()}\n"
        descriptor = os.open(payload["diary"], os.O_WRONLY | os.O_APPEND)
        os.write(descriptor, line.encode())
        os.close(descriptor)


@task("note")
async def note_only(payload: JsonObject, ctx: TaskContext) -> JsonObject:
    note(payload, ctx)
    await asyncio.sleep(payload.get("seconds", 0))
    return {"attempt": ctx.attempt}


@task("hold")
async def hold(payload: JsonObject, ctx: TaskContext) -> JsonObject:
    """Run until the file that the payload names is there."""
    note(payload, ctx)
    while not os.path.exists(payload["until"]):  # noqa: ASYNC110, ASYNC240, PTH110 - a sign from another process
        await asyncio.sleep(POLL_S)
    return {"pid": os.getpid()}


@task("hold_first")
async def hold_first(payload: JsonObject, ctx: TaskContext) -> JsonObject:
    """Run for long in the first attempt, end at once in later ones."""
    note(payload, ctx)
    await asyncio.sleep(payload["seconds"] if ctx.attempt == 1 else 0)
    return {"attempt": ctx.attempt}


@task("block_loop")
async def block_loop(payload: JsonObject, ctx: TaskContext) -> JsonObject:
    """Hold the event loop of the worker, as badly written handlers do."""
    note(payload, ctx)
    time.sleep(payload["seconds"])  # noqa: ASYNC251 - it is what this task is for
    return {"attempt": ctx.attempt}


@task("block_thread")
def block_thread(payload: JsonObject, ctx: TaskContext) -> JsonObject:
    note(payload, ctx)
    time.sleep(payload["seconds"])
    return {"attempt": ctx.attempt}


@task("kill_worker")
def kill_worker(payload: JsonObject, ctx: TaskContext) -> None:
    note(payload, ctx)
    os.kill(os.getpid(), signal.SIGKILL)


@task("lose_redis")
async def lose_redis(payload: JsonObject, ctx: TaskContext) -> JsonObject:
    """Fail as a handler does whose own Redis is away, in the first attempt."""
    note(payload, ctx)
    if ctx.attempt == 1:
        raise exceptions.ConnectionError("gone")
    return {"attempt": ctx.attempt}


@task("lose_redis_in_time")
def lose_redis_in_time(payload: JsonObject, ctx: TaskContext) -> JsonObject:
    note(payload, ctx)
    if ctx.attempt == 1:
        raise exceptions.TimeoutError("late")
    return {"attempt": ctx.attempt}


@task("mixed")
async def mixed(payload: JsonObject, ctx: TaskContext) -> JsonObject:
    """Succeed, fail once, or fail for good, by the number in the payload."""
    note(payload, ctx)
    await asyncio.sleep(payload.get("seconds", 0))
    kind = payload["n"] % 20
    if kind == 0:
        raise PermanentError("for good")
    if kind in {1, 2} and ctx.attempt == 1:
        raise RetryableError("once")
    return {"n": payload["n"]}
