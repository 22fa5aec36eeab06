"""The figures of the whole deployment, read for whoever scrapes: seldom enough that nobody can wear the broker out."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Final

from msgspec import Struct

from dtq.application.observers import Observers
from dtq.application.patience import Patience
from dtq.domain.errors import BrokerUnavailable
from dtq.domain.text import class_name
from dtq.domain.workers import is_active, liveness
from dtq.ports.environment import Clock
from dtq.ports.events import Observer
from dtq.ports.survey import Survey, Surveyor

FRESH: Final = timedelta(seconds=2)
"""How long a reading is shown again instead of a new one, a failed one too."""

WITHIN: Final = timedelta(seconds=2)
"""How long a reading may take: a scrape has more to show than this."""


class Reading(Struct, frozen=True, kw_only=True):
    """What was found; ``workers_active`` is approximate by what happened since their last heartbeats."""

    survey: Survey
    workers_active: int


class Readings:
    """Reads at most once in two seconds, however often it is asked, and one at a time."""

    def __init__(
        self,
        surveyor: Surveyor,
        *,
        clock: Clock,
        heartbeat_interval: timedelta,
        max_queues: int,
        observers: Sequence[Observer],
    ) -> None:
        self._surveyor = surveyor
        self._clock = clock
        self._interval = heartbeat_interval
        self._max_queues = max_queues
        self._observer = Observers(observers)
        self._turn = asyncio.Lock()
        self._last: Reading | None = None
        self._fresh_until = float("-inf")

    async def take(self) -> Reading | None:
        """Return the figures, at most two seconds old; None where the broker could not be asked."""
        async with self._turn:
            if self._clock.monotonic() >= self._fresh_until:
                self._last = await self._read()
                self._fresh_until = self._clock.monotonic() + FRESH.total_seconds()
            return self._last

    async def _read(self) -> Reading | None:
        survey = partial(self._surveyor.survey, limit=self._max_queues)
        try:
            found = await Patience(self._clock, within=WITHIN).read(survey)
        except BrokerUnavailable as error:
            self._observer.noticed("gauges_unread", error=class_name(error))
            return None
        now = self._clock.now()
        states = [liveness(heartbeat, now=now, interval=self._interval) for heartbeat in found.heartbeats]
        return Reading(survey=found, workers_active=sum(map(is_active, states)))
