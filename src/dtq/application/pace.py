"""Long work on the event loop, done in pieces, so that nobody else waits for all of it."""

from datetime import timedelta
from typing import Final

from dtq.ports.environment import Clock

PIECE_BYTES: Final = 64 * 1024
"""How much is worked through at a time; of text that is as bad as can be, some ten milliseconds."""

TURNS: Final = 4
"""How often the loop goes round between two pieces: about as often as a small request needs to be answered."""


class Pace:
    """Counts the bytes that one long work has gone through, and lets others have the loop now and then."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = 0

    async def done(self, size: int) -> None:
        """Take note of *size* bytes of work."""
        self._since += size
        if self._since < PIECE_BYTES:
            return
        self._since = 0
        for _ in range(TURNS):
            await self._clock.sleep(timedelta())
