"""Handlers that do with their payload what no handler should."""

import asyncio
import logging
import threading
from typing import Any, NoReturn

import structlog

from dtq import TaskContext, task

_forgotten: set[asyncio.Task[None]] = set()


async def _fail(payload: dict[str, Any]) -> NoReturn:
    raise ValueError(f"in the background: {payload}")


def _fail_in_thread(payload: dict[str, Any]) -> NoReturn:
    raise ValueError(f"in a thread: {payload}")


@task("leak.async")
async def leak_async(payload: dict[str, Any], ctx: TaskContext) -> NoReturn:
    """Leave a failing task behind, log its own failure, and fail."""
    del ctx
    background = asyncio.create_task(_fail(payload))
    await asyncio.wait({background})
    del background
    try:
        await _fail(payload)
    except ValueError:
        logging.getLogger(__name__).exception("it failed")
        structlog.get_logger().exception("it failed")
    raise ValueError(f"in a message: {payload}")


@task("leak.sync")
def leak_sync(payload: dict[str, Any], ctx: TaskContext) -> NoReturn:
    """Leave a thread behind that fails, and fail."""
    del ctx
    thread = threading.Thread(target=_fail_in_thread, args=(payload,))
    thread.start()
    thread.join()
    raise ValueError(f"in a message: {payload}")


@task("say")
async def say(payload: dict[str, Any], ctx: TaskContext) -> str:
    """Log a line."""
    del payload, ctx
    logging.getLogger(__name__).info("said so")
    return "said"
