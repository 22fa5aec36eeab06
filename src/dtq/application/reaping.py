"""When a worker takes over entries whose owners went silent, and when it holds back."""

import math
from datetime import datetime, timedelta
from typing import Final

from dtq.ports.environment import Chance, Clock

HANDED_BACK: Final = timedelta(hours=12)
"""An entry that has been idle for so long was handed back, not left by a worker that lost its broker."""

SURELY_HANDED_BACK: Final = timedelta(days=29)
"""The same, where nobody may have looked for days: only what is handed back looks idle for thirty days at once."""

_JUMP: Final = 1.0
_CAUTIOUS_BEATS: Final = 2
"""After how many of its beats whoever lives has been heard: one may just have been missed."""


class Reaping:
    """The turns of reaping, and the caution after an outage.

    Idle time counts the downtime of the broker: whoever reaped right after it would charge every running task of its
    peers an attempt. So nothing but what was handed back is taken until they have had the time to extend.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        chance: Chance,
        visibility_timeout: timedelta,
        heartbeat_interval: timedelta,
        beat_interval: timedelta,
    ) -> None:
        self._clock = clock
        self._chance = chance
        self._visibility = visibility_timeout
        self._caution = _CAUTIOUS_BEATS * heartbeat_interval
        self._first_look = _CAUTIOUS_BEATS * beat_interval
        self._opens_at = clock.monotonic()
        self._is_out = False
        self._is_asked = False
        self._next_at = clock.monotonic()
        self._offset: float | None = None

    @property
    def is_due(self) -> bool:
        """Whether the next sweep is to reap."""
        return self._clock.monotonic() >= self._next_at

    @property
    def due_in(self) -> timedelta:
        """How long until the next turn, rounded up, so that it is due then."""
        return timedelta(milliseconds=math.ceil(1000 * max(0.0, self._next_at - self._clock.monotonic())))

    @property
    def idle(self) -> timedelta:
        """How long an entry must have been idle to be taken now."""
        is_cautious = self._is_out or self._clock.monotonic() < self._opens_at
        return max(self._visibility, HANDED_BACK) if is_cautious else self._visibility

    def ask(self) -> None:
        """Let sweeps reap until one has got to the lowest band."""
        self._is_asked = True
        self._next_at = self._clock.monotonic()

    def done(self, *, is_whole: bool, has_found: bool) -> None:
        """Take note of a reaping sweep: the next is due after a quarter of the visibility timeout, or less.

        One that was asked for, or *has_found* abandoned work, counts only if it *is_whole*: a sweep that found its fill
        in a high band has not yet seen what was left in a lower one, which must not wait behind fresh work of still
        lower ones, nor for another turn.
        """
        if not is_whole and (self._is_asked or has_found):
            return
        self._is_asked = False
        now = self._clock.monotonic()
        self._next_at = now + self._visibility.total_seconds() / 4 * self._chance.uniform(0.7, 1.0)
        if now < self._opens_at:
            self._next_at = min(self._next_at, self._opens_at)

    def entered(self) -> None:
        """Hold back for two beats: a newcomer cannot know what its peers have just lived through."""
        self._hold_back(self._first_look)

    def outage(self) -> None:
        """Hold back: the broker is out of reach."""
        self._is_out = True

    def recovered(self) -> None:
        """Hold back for two more heartbeats, if there was an outage: the broker is there again."""
        if not self._is_out:
            return
        self._is_out = False
        self._hold_back(self._caution)

    def observe(self, now: datetime, *, asked_at: float) -> bool:
        """Compare the broker's clock with ours; hold back for one visibility timeout, and tell, if it has jumped.

        *now* was read somewhere between *asked_at* and this moment, on our monotonic clock.
        """
        highest = now.timestamp() - asked_at
        lowest = now.timestamp() - self._clock.monotonic()
        known, self._offset = self._offset, lowest
        if known is None:
            return False
        if lowest - _JUMP <= known <= highest + _JUMP:
            self._offset = min(max(known, lowest), highest)
            return False
        self._hold_back(self._visibility)
        return True

    def _hold_back(self, duration: timedelta) -> None:
        self._opens_at = max(self._opens_at, self._clock.monotonic() + duration.total_seconds())
        self._next_at = min(self._next_at, self._opens_at)
