"""Task types to try dtq with (contract section 14): synthetic data, no shell, no network but the counter's Redis."""

import asyncio
import math
import os
import re
import time
from datetime import timedelta
from typing import Any, Final

from dtq import PermanentError, RetryableError, TaskContext, task

LONGEST: Final = timedelta(seconds=30)
HIGHEST_FIBONACCI: Final = 35
COUNTER_LIFETIME: Final = timedelta(days=1)
_COUNTER_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_COUNTER_KEY: Final = "dtq:demo:counter:{}"  # tidy: the demo's own key, beside the broker's

JsonObject = dict[str, Any]


@task("echo_task")
async def echo(payload: JsonObject, ctx: TaskContext) -> JsonObject:
    """Return the payload."""
    del ctx
    return payload


@task("sleep_task")
async def sleep(payload: JsonObject, ctx: TaskContext) -> JsonObject:
    """Wait for ``seconds``, at most 30 (which needs a timeout above the default), without holding anybody up."""
    del ctx
    seconds = _seconds(payload)
    await asyncio.sleep(seconds)
    return {"slept": seconds}


@task("slow_task")
def slow(payload: JsonObject, ctx: TaskContext) -> JsonObject:
    """Block its thread for ``seconds``, at most 30: it cannot be stopped, only waited for."""
    del ctx
    seconds = _seconds(payload)
    time.sleep(seconds)
    return {"slept": seconds}


@task("fibonacci_task", cpu_bound=True)
def fibonacci(payload: JsonObject, ctx: TaskContext) -> JsonObject:
    """Return the ``n``-th Fibonacci number, n at most 35, the slow way: it is there to keep a processor busy."""
    del ctx
    number = payload.get("n")
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= HIGHEST_FIBONACCI:
        raise PermanentError(f"n must be an integer within 0..{HIGHEST_FIBONACCI}")
    return {"n": number, "fibonacci": _fibonacci(number)}


@task("flaky_task")
async def flaky(payload: JsonObject, ctx: TaskContext) -> JsonObject:
    """Fail in the first ``fail_times`` attempts (1 where it is not given), then succeed."""
    fail_times = payload.get("fail_times", 1)
    if isinstance(fail_times, bool) or not isinstance(fail_times, int) or fail_times < 0:
        raise PermanentError("fail_times must be an integer of at least 0")
    if ctx.attempt <= fail_times:
        raise RetryableError(f"attempt {ctx.attempt} fails, as {fail_times} were asked to")
    return {"attempt": ctx.attempt}


@task("always_fail_task")
async def always_fail(payload: JsonObject, ctx: TaskContext) -> JsonObject:
    """Fail in every attempt, in a way that is retried, until none is left."""
    del payload
    raise RetryableError(f"attempt {ctx.attempt} fails, as every attempt does")


@task("counter_task")
async def counter(payload: JsonObject, ctx: TaskContext) -> JsonObject:
    """Add ``by`` (1 where it is not given) to the counter ``name`` in Redis, in one atomic step; return the sum.

    An attempt that is repeated adds again: see dtq.idempotent_operation for how to prevent that.
    """
    del ctx
    name, step = payload.get("name", "demo"), payload.get("by", 1)
    if not isinstance(name, str) or not _COUNTER_NAME.fullmatch(name):
        raise PermanentError(f"name must match {_COUNTER_NAME.pattern}")
    if isinstance(step, bool) or not isinstance(step, int) or abs(step) > 10**9:
        raise PermanentError("by must be an integer within -1000000000..1000000000")
    return {"name": name, "value": await _add(_COUNTER_KEY.format(name), step)}


async def _add(key: str, step: int) -> int:
    # imported late: only this task needs a client
    from redis.asyncio import Redis  # noqa: PLC0415 - see above

    client: Redis = Redis.from_url(os.environ.get("DTQ_REDIS_URL") or "redis://localhost:6379/0")
    async with client, client.pipeline(transaction=True) as pipeline:
        pipeline.incrby(key, step)
        pipeline.expire(key, COUNTER_LIFETIME)
        value, _ = await pipeline.execute()
        return int(value)


def _fibonacci(number: int) -> int:
    return number if number < 2 else _fibonacci(number - 1) + _fibonacci(number - 2)  # noqa: PLR2004 - their definition


def _seconds(payload: JsonObject) -> float:
    seconds = payload.get("seconds", 1)
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not math.isfinite(seconds):
        raise PermanentError("seconds must be a number")
    if not 0 <= seconds <= LONGEST.total_seconds():
        raise PermanentError(f"seconds must be within 0..{LONGEST.total_seconds():g}")
    return seconds
