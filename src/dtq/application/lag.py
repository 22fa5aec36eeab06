"""How late the event loop comes to what is due: a handler that computes on it keeps everything else waiting."""

from datetime import timedelta
from typing import Final

from msgspec import Struct

from dtq.ports.environment import Clock
from dtq.ports.events import Observer

INTERVAL: Final = timedelta(milliseconds=250)
"""How often the loop is looked at."""

WINDOW: Final = timedelta(minutes=1)
"""For how long a lag is shown: longer than the time between two scrapes, so that none is missed."""

WORRYING: Final = timedelta(seconds=1)
"""From which lag on operators should read of it."""


class _Sample(Struct, frozen=True):
    at: float
    lag: float


class LoopLag:
    """Looks at the loop that ``run`` runs on. ``worst`` may be asked from any thread, also while the loop stands."""

    def __init__(self, clock: Clock, *, observer: Observer) -> None:
        self._clock = clock
        self._observer = observer
        self._due = float("inf")
        # replaced as a whole and never changed: another thread may be reading it
        self._samples: tuple[_Sample, ...] = ()

    async def run(self) -> None:
        """Look again and again, until canceled."""
        while True:
            self._due = self._clock.monotonic() + INTERVAL.total_seconds()
            await self._clock.sleep(INTERVAL)
            self._note(self._clock.monotonic())

    def worst(self) -> float:
        """Return the greatest lag of the last minute in seconds, the one that goes on included."""
        now = self._clock.monotonic()
        return max(0.0, now - self._due, *(sample.lag for sample in self._recent(now)))

    def _note(self, now: float) -> None:
        lag = max(0.0, now - self._due)
        # what is smaller and older than this one will never be the worst again
        self._samples = (*(sample for sample in self._recent(now) if sample.lag > lag), _Sample(now, lag))
        if lag > WORRYING.total_seconds():
            self._observer.noticed("event_loop_lag", seconds=round(lag, 3))

    def _recent(self, now: float) -> tuple[_Sample, ...]:
        begin = now - WINDOW.total_seconds()
        return tuple(sample for sample in self._samples if sample.at >= begin)
