"""The tasks that are measured: each stamps its slot, and does nothing else or sleeps 5 ms."""

import asyncio
import time
from typing import Any, Final

from benchmarks.stamps import stamp
from dtq import TaskContext, task

NAP_S: Final = 0.005
NOOP: Final = "noop"
NOOP_SYNC: Final = "noop_sync"
NAP: Final = "nap"


@task(NOOP)
async def noop(payload: dict[str, Any], ctx: TaskContext) -> None:
    """Do nothing."""
    stamp(payload["i"])


@task(NOOP_SYNC)
def noop_sync(payload: dict[str, Any], ctx: TaskContext) -> None:
    """Do nothing, in a thread."""
    stamp(payload["i"])


@task(NAP)
async def nap(payload: dict[str, Any], ctx: TaskContext) -> None:
    """Wait 5 ms, as for another service."""
    await asyncio.sleep(NAP_S)
    stamp(payload["i"])


async def limit_noop(payload: dict[str, Any]) -> None:
    """Do nothing, for benchmarks/limit.py."""
    stamp(payload["i"])


async def limit_nap(payload: dict[str, Any]) -> None:
    """Wait 5 ms, for benchmarks/limit.py."""
    await asyncio.sleep(NAP_S)
    stamp(payload["i"])


def now_ns() -> int:
    """Return the time that stamps are written in."""
    return time.monotonic_ns()
