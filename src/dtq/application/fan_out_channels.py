"""Who gets which event: clients that want the same in the same form share one channel."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any, TypeAlias

from dtq.application.fan_out_buffer import CRITICAL, Block, Item
from dtq.application.fan_out_filter import EventFilter
from dtq.application.fan_out_tap import Message, Tap
from dtq.domain.events import Event

Encode: TypeAlias = Callable[[Message], Any]
Key: TypeAlias = tuple[EventFilter, Encode]


class Channel:
    """The clients of one filter and one form, and what was found for them and not yet passed on."""

    def __init__(self, wanted: EventFilter, encode: Encode) -> None:
        self.wanted = wanted
        self.encode = encode
        self.taps: set[Tap[Any]] = set()
        self.found: list[Item[Any]] = []

    def pass_on(self) -> None:
        """Give every client what was found."""
        block = Block(self.found)
        self.found = []
        for tap in self.taps:
            tap.put(block)


class Channels:
    """All clients. An event is matched once a channel and encoded once a form, however many clients there are."""

    def __init__(self) -> None:
        self._all: dict[Key, Channel] = {}
        # a client that waits for one task must not cost every event a comparison
        self._of_task: dict[str, dict[Key, Channel]] = {}
        self._of_any: dict[Key, Channel] = {}
        self._sequence = count()
        self._number = 0

    def __len__(self) -> int:
        return self._number

    def taps(self) -> Iterator[Tap[Any]]:
        """Return the clients."""
        for channel in self._all.values():
            yield from channel.taps

    def add(self, tap: Tap[Any]) -> None:
        """Let a client get what comes."""
        key = (tap.wanted, tap.encode)
        if key not in self._all:
            self._open(key)
        self._all[key].taps.add(tap)
        self._number += 1

    def remove(self, tap: Tap[Any]) -> None:
        """Let a client get nothing more."""
        key = (tap.wanted, tap.encode)
        channel = self._all[key]
        channel.taps.remove(tap)
        self._number -= 1
        if not channel.taps:
            self._shut(key)

    def next_sequence(self) -> int:
        """Return the next place in the order of all messages."""
        return next(self._sequence)

    def pass_on(self, events: Iterable[Event]) -> None:
        """Give each client those of *events* that it wants."""
        touched: dict[Key, Channel] = {}
        for event in events:
            sequence = self.next_sequence()
            is_critical = event.type in CRITICAL
            made: dict[Encode, Item[Any]] = {}
            for key, channel in self._candidates(event):
                if channel.wanted.admits(event):
                    encode = channel.encode
                    if encode not in made:
                        made[encode] = Item(sequence, encode(event), is_critical)
                    channel.found.append(made[encode])
                    touched[key] = channel
        for channel in touched.values():
            channel.pass_on()

    def _candidates(self, event: Event) -> Iterator[tuple[Key, Channel]]:
        yield from self._of_any.items()
        if event.task_id in self._of_task:
            yield from self._of_task[event.task_id].items()

    def _open(self, key: Key) -> None:
        channel = self._all[key] = Channel(*key)
        for group in self._groups(channel.wanted):
            group[key] = channel

    def _shut(self, key: Key) -> None:
        channel = self._all.pop(key)
        for group in self._groups(channel.wanted):
            del group[key]
        for task_id in channel.wanted.task_ids:
            if not self._of_task[task_id]:
                del self._of_task[task_id]

    def _groups(self, wanted: EventFilter) -> Sequence[dict[Key, Channel]]:
        if not wanted.task_ids:
            return [self._of_any]
        return [self._of_task.setdefault(task_id, {}) for task_id in wanted.task_ids]
