"""The only time, chance and new names of dtq that are real."""

import asyncio
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from os import urandom
from typing import Final

from dtq.domain.task import LeaseToken, TaskId, Version, WorkerId
from dtq.ports.environment import Timer

_VARIANTS: Final = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}


def _uuid4_hex() -> str:
    """Return what uuid.uuid4().hex does, without an object for each: a worker needs three a task."""
    digits = urandom(16).hex()
    return f"{digits[:12]}4{digits[13:16]}{_VARIANTS[digits[16]]}{digits[17:]}"


class SystemClock:
    """Clock over this host's clocks and the running event loop."""

    # asked about ten times a task, and so without a call of its own
    monotonic = staticmethod(time.monotonic)

    def now(self) -> datetime:
        moment = datetime.now(UTC)
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000)

    async def sleep(self, duration: timedelta) -> None:
        await asyncio.sleep(duration.total_seconds())

    def call_later(self, delay: timedelta, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(delay.total_seconds(), callback)


class UuidIds:
    """Ids from the system's randomness."""

    def task(self) -> TaskId:
        return TaskId(_uuid4_hex())

    def worker(self) -> WorkerId:
        return WorkerId(f"worker-{_uuid4_hex()[:8]}")

    def token(self) -> Version:
        return Version(_uuid4_hex())

    def lease(self) -> LeaseToken:
        return LeaseToken(_uuid4_hex())


class SystemChance:
    """Chance from a generator that the system seeds."""

    def __init__(self) -> None:
        self._random = random.Random()

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)
