"""Entries whose records cannot be read: nobody can run them, and nobody may throw them away."""

from collections.abc import Collection, Sequence
from datetime import timedelta

from dtq.domain.task import QueueName, Receipt
from dtq.ports.broker import UnreadableEntry
from dtq.ports.environment import Clock
from dtq.ports.events import Observer


class SetAside:
    """What this worker has taken and cannot read. It keeps that, silently, for a visibility timeout.

    Then it is reaped like any abandoned entry, by whoever comes first: if somebody has mended the record, it is run.
    Handing it back would bring it round at once, and again, and again.
    """

    def __init__(self, *, clock: Clock, observer: Observer, queue: QueueName, rest: timedelta) -> None:
        self._clock = clock
        self._observer = observer
        self._queue = queue
        self._rest = rest.total_seconds()
        self._until: dict[Receipt, float] = {}

    @property
    def receipts(self) -> Collection[Receipt]:
        """What is not to be handed back."""
        self._forget_what_is_over()
        return self._until.keys()

    def add(self, entries: Sequence[UnreadableEntry]) -> None:
        """Keep *entries*, and tell of them."""
        if not entries:
            return
        self._forget_what_is_over()
        until = self._clock.monotonic() + self._rest
        self._until |= {entry.receipt: until for entry in entries}
        self._observer.noticed("records_unreadable", queue=self._queue, entries=len(entries), reason=entries[0].reason)

    def _forget_what_is_over(self) -> None:
        now = self._clock.monotonic()
        self._until = {receipt: until for receipt, until in self._until.items() if until > now}
