"""What waits for one client, and what is given up when it does not keep up."""

from collections import deque
from collections.abc import Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from dtq.domain.events import EventType

CRITICAL: Final = frozenset(
    {
        EventType.TASK_SUCCEEDED,
        EventType.TASK_FAILED,
        EventType.TASK_DEAD_LETTERED,
        EventType.TASK_CANCELLED,
        EventType.TASK_EXPIRED,
    }
)
"""The events that end a task: a slow client loses them last."""

T = TypeVar("T")


class Item(NamedTuple, Generic[T]):
    """One message, ready to be sent, and its place in the order of all."""

    sequence: int
    content: T
    is_critical: bool


class Block(Generic[T]):
    """Messages in their order, parted once for all clients that get them."""

    __slots__ = ("critical", "items", "ordinary")

    def __init__(self, items: Sequence[Item[T]]) -> None:
        self.items = items
        self.critical = [item for item in items if item.is_critical]
        self.ordinary = [item for item in items if not item.is_critical]


class Buffer(Generic[T]):
    """At most *limit* messages for one client, critical ones and others in a queue each.

    In a full buffer a new message that is not critical is dropped; a critical one takes the place of the oldest that is
    not; where there is none left, the buffer has overflowed, and its client is to be let go.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._critical: deque[Item[T]] = deque()
        self._ordinary: deque[Item[T]] = deque()
        self._dropped = 0
        self.has_overflowed = False

    def __len__(self) -> int:
        return len(self._critical) + len(self._ordinary)

    @property
    def room(self) -> int:
        """How many messages fit in without loss."""
        return self._limit - len(self)

    def put(self, block: Block[T]) -> None:
        """Add messages that are younger than all that were added before."""
        if len(block.items) <= self.room:
            self._critical.extend(block.critical)
            self._ordinary.extend(block.ordinary)
            return
        for item in block.items:
            self._put_one(item)

    def take(self, limit: int) -> list[T]:
        """Remove up to *limit* messages, the oldest first, and return their contents."""
        taken: list[T] = []
        while len(taken) < limit and self:
            taken.append(self._older_queue().popleft().content)
        return taken

    def take_dropped(self) -> int:
        """Return how many messages were lost since this was last asked."""
        dropped, self._dropped = self._dropped, 0
        return dropped

    def clear(self) -> None:
        """Let go of everything."""
        self._critical.clear()
        self._ordinary.clear()

    def _put_one(self, item: Item[T]) -> None:
        if self.room > 0:
            (self._critical if item.is_critical else self._ordinary).append(item)
            return
        if item.is_critical and not self._ordinary:
            self.has_overflowed = True
        elif item.is_critical:
            self._ordinary.popleft()
            self._critical.append(item)
        self._dropped += 1

    def _older_queue(self) -> deque[Item[T]]:
        critical, ordinary = self._critical, self._ordinary
        if not ordinary or (critical and critical[0].sequence < ordinary[0].sequence):
            return critical
        return ordinary
