"""How long to wait before the next try."""

from datetime import timedelta
from typing import Final

from dtq.ports.environment import Chance

_SHORTEST: Final = 0.1
_LONGEST: Final = 5.0


class Backoff:
    """Pauses that double from 0.1 to 5 seconds while something keeps failing; with jitter, so that peers spread."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._next = _SHORTEST

    def pause(self) -> timedelta:
        """Return how long to wait before the next try."""
        seconds = self._next * self._chance.uniform(0.8, 1.0)
        self._next = min(_LONGEST, 2 * self._next)
        return timedelta(seconds=seconds)

    def reset(self) -> None:
        """Begin with short pauses again, because a try succeeded."""
        self._next = _SHORTEST
