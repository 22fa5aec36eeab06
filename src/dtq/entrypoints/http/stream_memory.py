"""What many clients took of the system's memory goes back to it soon after they have gone."""

import ctypes
import gc
from datetime import timedelta
from typing import Final

from dtq.ports.environment import Clock, Timer

MANY: Final = 100
"""Fewer clients leave too little behind to be worth a collection."""

SETTLED: Final = timedelta(seconds=10)
"""Clients that vanish together are not noticed all at once."""


class MemoryReturn:
    """Counts clients that leave; after many, collects what they left in cycles and hands free memory back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._departed = 0
        self._timer: Timer | None = None
        self.times = 0

    def departed(self) -> None:
        """Take note that a client has left."""
        self._departed += 1
        if self._departed >= MANY and self._timer is None:
            self._timer = self._clock.call_later(SETTLED, self._give_back)

    def _give_back(self) -> None:
        self._departed, self._timer = 0, None
        self.times += 1
        gc.collect()
        # the C library keeps what is freed for next time, and there may be no next time
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
