"""An observer that remembers what it was told."""

from dtq.domain.change import Change
from dtq.domain.events import Event


class Recorder:
    """Keeps changes, events and notices in the order in which they came."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.events: list[Event] = []
        self.notices: list[tuple[str, dict[str, object]]] = []

    def committed(self, *changes: Change) -> None:
        self.changes += changes

    def happened(self, event: Event) -> None:
        self.events.append(event)

    def noticed(self, what: str, **details: str | float | bool | None) -> None:
        self.notices.append((what, dict(details)))
