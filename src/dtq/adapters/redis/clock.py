"""The server's time, kept by what its replies say against the host's monotonic clock."""

from datetime import datetime, timedelta

from dtq.adapters.system import SystemClock
from dtq.domain.entry import moment
from dtq.ports.environment import Clock


class RedisClock:
    """Clock that shows the server's time; before the first reply it shows the host's."""

    def __init__(self, host: Clock | None = None) -> None:
        self._host = host or SystemClock()
        self.monotonic = self._host.monotonic
        """The host's own, handed on as it is: it is asked several times a task."""
        self.call_later = self._host.call_later
        self._offset: float | None = None
        # the millisecond that was told last: of a batch many ask within the same one
        self._told = (0, moment(0))

    def learn(self, server: float, *, sent: float, received: float) -> None:
        """Take note that the server's clock stood at *server* at a moment between *sent* and *received*.

        The offset is replaced as soon as a reply contradicts it, by the nearest one that fits; nothing is averaged. So
        a reply that lay unread for seconds, which fits many offsets, moves nothing; and as the first one is the lowest
        that fits, this clock is never ahead of the server's, and goes back only when that does.
        """
        lowest, highest = server - received, server - sent
        self._offset = lowest if self._offset is None else min(max(self._offset, lowest), highest)

    def now(self) -> datetime:
        if self._offset is None:
            return self._host.now()
        now = int((self.monotonic() + self._offset) * 1000)
        if now != self._told[0]:
            self._told = now, moment(now)
        return self._told[1]

    async def sleep(self, duration: timedelta) -> None:
        await self._host.sleep(duration)
