"""The only time, chance and new names of dtq that are real."""

import asyncio
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from os import register_at_fork, urandom
from typing import Final, cast

from dtq.domain.task import LeaseToken, TaskId, Version, WorkerId
from dtq.ports.environment import Timer

_MANY: Final = 64
"""How many ids are made at a time: asking the system for chance takes longer than all the rest of making one."""

_SIZE: Final = 16
_RANDOM: Final = int.from_bytes(((1 << 128) - 1 ^ (0xF << 76 | 0b11 << 62)).to_bytes(_SIZE) * _MANY)
_FIXED: Final = int.from_bytes((4 << 76 | 0b10 << 62).to_bytes(_SIZE) * _MANY)
"""Which bits of uuid4s are random, and what the others tell: their version and variant."""

_made: Final[list[str]] = []
# a child that went on with what its parent has made would give the same ids again
register_at_fork(after_in_child=_made.clear)


def _uuid4_hex() -> str:
    """Return what uuid.uuid4().hex does, at a fraction of its cost: a worker needs three a task."""
    while True:
        try:
            return _made.pop()
        except IndexError:
            # as well where another thread took the last one
            drawn = int.from_bytes(urandom(_SIZE * _MANY)) & _RANDOM | _FIXED
            digits = drawn.to_bytes(_SIZE * _MANY).hex()
            _made.extend([digits[first : first + 2 * _SIZE] for first in range(0, len(digits), 2 * _SIZE)])


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

    def worker(self) -> WorkerId:
        return WorkerId(f"worker-{_uuid4_hex()[:8]}")

    # four of them a task, and so without a call of their own
    task = staticmethod(cast("Callable[[], TaskId]", _uuid4_hex))
    token = staticmethod(cast("Callable[[], Version]", _uuid4_hex))
    lease = staticmethod(cast("Callable[[], LeaseToken]", _uuid4_hex))


class SystemChance:
    """Chance from a generator that the system seeds."""

    def __init__(self) -> None:
        self.uniform = random.Random().uniform
        """The generator's own, since it is asked for each task."""
