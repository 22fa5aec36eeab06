"""How fast full queues take new work: the basis of what a refused client is told to wait."""

import math
from collections import OrderedDict
from typing import Final

from msgspec import Struct

from dtq.ports.answers import Full
from dtq.ports.environment import Clock

LONGEST_S: Final = 30
"""The longest wait that a client is told."""

KEPT: Final = 1_000
"""How many full queues are watched at once; the one that was full longest ago is forgotten first."""

_WINDOW_S: Final = 60.0
"""What lies further back counts half, and a queue that was not full for so long is looked at anew."""


class _Watch(Struct):
    since: float
    seen: float
    admitted: float = 0.0


class Refill:
    """Watches queues while they are full. A full queue admits as much as its workers finish.

    What other processes submit is not seen, so that the wait is rather too long than too short.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._watches: OrderedDict[str, _Watch] = OrderedDict()

    def admitted(self, queue: str) -> None:
        """Take note of a task that a queue has admitted."""
        if queue in self._watches:
            self._watches[queue].admitted += 1

    def refused(self, full: Full, *, queue: str) -> int:
        """Take note of a refusal, and return after how many seconds, 1..30, to try again."""
        name = queue if full.reason == "queue_full" else full.reason
        now = self._clock.monotonic()
        watch = self._watches.pop(name, None)
        if watch is None or now - watch.seen > _WINDOW_S:
            watch = _Watch(since=now, seen=now)
        self._watches[name] = watch
        if len(self._watches) > KEPT:
            self._watches.popitem(last=False)
        watch.seen = now
        return _wait(watch, now=now, excess=max(1, full.value - full.limit + 1))


def _wait(watch: _Watch, *, now: float, excess: int) -> int:
    elapsed = now - watch.since
    if elapsed > _WINDOW_S:
        watch.since, watch.admitted = now - elapsed / 2, watch.admitted / 2
        elapsed /= 2
    return min(LONGEST_S, max(1, math.ceil(excess * elapsed / max(1.0, watch.admitted))))
