"""Loops that go on for ever: an error is told, waited out, and never the end."""

from collections.abc import Awaitable, Callable

from dtq.application.backoff import Backoff
from dtq.application.nudge import StopSign
from dtq.domain.errors import is_outage
from dtq.domain.text import class_name, text_of
from dtq.ports.environment import Chance
from dtq.ports.events import Observer


class Supervisor:
    """Repeats the steps of loops until the stop sign; what they raise is told, outages to *on_outage* as well."""

    def __init__(self, *, stop: StopSign, chance: Chance, observer: Observer, on_outage: Callable[[], None]) -> None:
        self._stop = stop
        self._chance = chance
        self._observer = observer
        self._on_outage = on_outage

    async def run(self, step: Callable[[], Awaitable[None]], *, name: str) -> None:
        """Repeat *step*, which waits by itself where it has nothing to do, until the stop sign is raised."""
        backoff = Backoff(self._chance)
        while not self._stop.is_raised():
            try:
                await step()
                backoff.reset()
            except Exception as error:  # noqa: BLE001 - a loop that ended would leave its duty undone, unseen
                if is_outage(error):
                    # of whatever else, the peers are not to be spared as after an outage: they go on
                    self._on_outage()
                await self._recover(name, error, backoff)

    async def _recover(self, name: str, error: Exception, backoff: Backoff) -> None:
        self._observer.noticed("loop_failed", loop=name, error=class_name(error), reason=text_of(error))
        await self._stop.pause(backoff.pause())
