"""Several observers as one."""

from collections.abc import Sequence

from dtq.domain.change import Change
from dtq.domain.events import Event
from dtq.ports.events import Observer


class Observers:
    """Passes everything on to each of its observers, in order."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = tuple(observers)

    def committed(self, *changes: Change) -> None:
        """Pass changes on."""
        for observer in self._observers:
            observer.committed(*changes)

    def happened(self, event: Event) -> None:
        """Pass an event on."""
        for observer in self._observers:
            observer.happened(event)

    def noticed(self, what: str, **details: str | float | bool | None) -> None:
        """Pass a notice on."""
        for observer in self._observers:
            observer.noticed(what, **details)
