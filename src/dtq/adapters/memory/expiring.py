"""A mapping whose values are forgotten when their time is over."""

import heapq
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import count
from typing import Generic, TypeVar

from dtq.ports.environment import Clock

K = TypeVar("K")
V = TypeVar("V")


class Expiring(Generic[K, V]):
    """Values with a lifetime each; one that is over is as good as never stored, and soon removed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._values: dict[K, tuple[V, datetime]] = {}
        self._ends: list[tuple[datetime, int, K]] = []
        self._awaited: set[K] = set()
        self._order = count()

    def get(self, key: K) -> V | None:
        """Return the value, or None where there is none any more."""
        found = self._values.get(key)
        return None if found is None or found[1] <= self._clock.now() else found[0]

    def put(self, key: K, value: V, *, lifetime: timedelta) -> None:
        """Store a value in place of an older one."""
        self._values[key] = (value, self._clock.now() + lifetime)
        self._await_end(key)
        self._sweep()

    def renew(self, key: K, *, lifetime: timedelta) -> bool:
        """Let a value live for *lifetime* from now; tell whether it was there."""
        value = self.get(key)
        if value is not None:
            self.put(key, value, lifetime=lifetime)
        return value is not None

    def remove(self, key: K) -> bool:
        """Forget a value; tell whether it was there."""
        was_there = self.get(key) is not None
        self._values.pop(key, None)
        return was_there

    def time_left(self, key: K) -> timedelta | None:
        """Return for how long a value will be there, or None where there is none."""
        found = self._values.get(key)
        if found is None or found[1] <= self._clock.now():
            return None
        return found[1] - self._clock.now()

    @property
    def size(self) -> int:
        """How many values take up room, expired ones that were not removed yet included."""
        return len(self._values)

    def __iter__(self) -> Iterator[K]:
        now = self._clock.now()
        return iter([key for key, (_, end) in self._values.items() if end > now])

    def _await_end(self, key: K) -> None:
        """Queue the key for removal once; a renewed one is queued again when its old end comes."""
        if key not in self._awaited:
            self._awaited.add(key)
            heapq.heappush(self._ends, (self._values[key][1], next(self._order), key))

    def _sweep(self) -> None:
        now = self._clock.now()
        while self._ends and self._ends[0][0] <= now:
            _, _, key = heapq.heappop(self._ends)
            self._awaited.discard(key)
            found = self._values.get(key)
            if found is not None and found[1] <= now:
                del self._values[key]
            elif found is not None:
                self._await_end(key)
