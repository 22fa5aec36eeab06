"""The only time, chance and new names of dtq that are real."""

import asyncio
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from dtq.domain.task import LeaseToken, TaskId, Version, WorkerId
from dtq.ports.environment import Timer


class SystemClock:
    """Clock over this host's clocks and the running event loop."""

    def now(self) -> datetime:
        moment = datetime.now(UTC)
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, duration: timedelta) -> None:
        await asyncio.sleep(duration.total_seconds())

    def call_later(self, delay: timedelta, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(delay.total_seconds(), callback)


class UuidIds:
    """Ids from the system's randomness."""

    def task(self) -> TaskId:
        return TaskId(uuid4().hex)

    def worker(self) -> WorkerId:
        return WorkerId(f"worker-{uuid4().hex[:8]}")

    def token(self) -> Version:
        return Version(uuid4().hex)

    def lease(self) -> LeaseToken:
        return LeaseToken(uuid4().hex)


class SystemChance:
    """Chance from a generator that the system seeds."""

    def __init__(self) -> None:
        self._random = random.Random()

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)
