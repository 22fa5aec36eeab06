"""When attempts must end: one timer for all of them."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final, Protocol

from dtq.ports.environment import Clock, Timer

NEVER: Final = float("inf")
"""When what has no end must end."""

_SHORTEST: Final = timedelta(milliseconds=1)
"""A timer may go off a little early; the next one is not to do so again and again."""


class Limited(Protocol):
    """What may go on until ``ends_at``, on the monotonic clock."""

    ends_at: float

    def overrun(self) -> None:
        """Hear that this time has come."""
        ...


class Deadlines:
    """Tells whoever overruns. Almost everybody ends long before, and so nobody gets a timer of its own."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._watched: set[Limited] = set()
        self.end: Final[Callable[[Limited], None]] = self._watched.discard
        """Takes note that somebody has ended; the set's own, since each attempt does."""
        self._rings_at = NEVER
        self._timer: Timer | None = None

    def watch(self, one: Limited) -> None:
        """Tell *one* when its time has come, unless it ends before."""
        self._watched.add(one)
        if one.ends_at < self._rings_at:
            self._set(one.ends_at)

    def _set(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._rings_at = at
        left = timedelta(seconds=at - self._clock.monotonic())
        self._timer = self._clock.call_later(max(left, _SHORTEST), self._ring)

    def _ring(self) -> None:
        self._rings_at, self._timer = NEVER, None
        now = self._clock.monotonic()
        for one in [one for one in self._watched if one.ends_at <= now]:
            self._watched.discard(one)
            one.overrun()
        if self._watched:
            self._set(min(one.ends_at for one in self._watched))
