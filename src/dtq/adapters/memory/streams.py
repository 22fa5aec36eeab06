"""The ready queues: streams of entries, and who owns which."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from msgspec import Struct

from dtq.domain.admission import MAX_PRIORITY
from dtq.domain.task import EntryId, QueueName, Receipt, WorkerId

BANDS: Final = tuple(range(MAX_PRIORITY, -1, -1))
"""The priorities in the order in which they are served."""


class Holding(Struct, frozen=True):
    """Who owns an entry, and since when (monotonic seconds) it has not been heard of."""

    owner: WorkerId
    idle_since: float


class Stream:
    """The entries of one priority of one queue, in order; each is either fresh or held."""

    def __init__(self) -> None:
        self.entries: dict[EntryId, Mapping[str, str]] = {}
        self.fresh: dict[EntryId, None] = {}
        self.held: dict[EntryId, Holding] = {}
        self.added = 0
        self._last = (0, 0)

    def add(self, fields: Mapping[str, str], *, at_ms: int) -> EntryId:
        """Append an entry; its id tells when, and is higher than every id before it."""
        last_ms, last_number = self._last
        self._last = (at_ms, 0) if at_ms > last_ms else (last_ms, last_number + 1)
        entry_id = EntryId(f"{self._last[0]}-{self._last[1]}")
        self.added += 1
        self.entries[entry_id] = fields
        self.fresh[entry_id] = None
        return entry_id

    def read(self, *, owner: WorkerId, now: float, limit: int) -> list[EntryId]:
        """Give the oldest fresh entries to *owner*."""
        taken = list(islice(self.fresh, limit))
        for entry_id in taken:
            del self.fresh[entry_id]
            self.held[entry_id] = Holding(owner, now)
        return taken

    def reap(self, *, owner: WorkerId, now: float, idle: float, limit: int) -> list[EntryId]:
        """Give to *owner* the oldest entries that were not heard of for *idle* seconds."""
        silent = (entry_id for entry_id, holding in self.held.items() if now - holding.idle_since >= idle)
        taken = list(islice(silent, limit))
        for entry_id in taken:
            self.held[entry_id] = Holding(owner, now)
        return taken

    def hold(self, entry_id: EntryId, *, owner: WorkerId, idle_since: float) -> None:
        """Make *owner* the owner of an entry, whoever was."""
        was_held = entry_id in self.held
        self.fresh.pop(entry_id, None)
        self.held[entry_id] = Holding(owner, idle_since)
        if not was_held:
            self.held = dict(sorted(self.held.items(), key=lambda item: position(item[0])))

    def is_owner(self, worker: WorkerId, *, entry_id: EntryId) -> bool:
        """Tell whether *worker* owns the entry."""
        holding = self.held.get(entry_id)
        return holding is not None and holding.owner == worker

    def remove(self, entry_id: EntryId) -> bool:
        """Remove an entry from the stream and from its owner; tell whether it was there."""
        self.fresh.pop(entry_id, None)
        self.held.pop(entry_id, None)
        return self.entries.pop(entry_id, None) is not None

    def forget_owners(self) -> None:
        """Make every entry fresh again."""
        self.held.clear()
        self.fresh = dict.fromkeys(self.entries)


class Queue:
    """The streams of one queue, and the names of those who read it."""

    def __init__(self) -> None:
        self.bands: Mapping[int, Stream] = {priority: Stream() for priority in BANDS}
        self.consumers: set[WorkerId] = set()

    @property
    def depth(self) -> int:
        """How many entries the queue has, waiting and held."""
        return sum(len(stream.entries) for stream in self.bands.values())

    @property
    def held(self) -> int:
        """How many entries have an owner."""
        return sum(len(stream.held) for stream in self.bands.values())

    def receipts(self, name: QueueName, *, owner: WorkerId) -> Iterator[Receipt]:
        """Go through what *owner* owns, highest priority first."""
        for priority, stream in self.bands.items():
            for entry_id, holding in stream.held.items():
                if holding.owner == owner:
                    yield Receipt(name, priority, entry_id)


def position(entry_id: EntryId) -> tuple[int, int]:
    """Return what entries of one stream are ordered by: the milliseconds of the adding, then a running number."""
    milliseconds, _, number = entry_id.partition("-")
    return int(milliseconds), int(number or 0)
