"""A change as this adapter makes it: what decides the form of its act, and what the act is filled with."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dtq.adapters.redis.codec import compared
from dtq.adapters.redis.keys import Keyspace
from dtq.adapters.redis.steps import milliseconds_text
from dtq.adapters.redis.wire import audit_fields, json_text, record_end, record_prefix
from dtq.domain.change import Change, Requirement
from dtq.domain.entry import dead_letter_fields, entry_fields, milliseconds
from dtq.domain.idempotency import record_of
from dtq.domain.retention import record_lifetime, task_lifetime
from dtq.domain.status import Place, TaskStatus
from dtq.domain.task import NO_VERSION, EntryId, Task, place_of
from dtq.ports.backend import BackendOptions

# named here, since to look up a member of an enumeration takes longer than to compare it
_IN_STREAMS: Final = frozenset({Place.READY, Place.HELD})
_DEAD: Final = Place.DEAD

_QUEUES_KNOWN: Final = 64
"""Of how many queues a process keeps each kind of name."""


class Shape(Struct, frozen=True):
    """All that the form of a move depends on, so that those of a shape share one.

    What the domain says of a change by the states it joins follows from the first ones.
    """

    before: TaskStatus | None
    after: TaskStatus
    source: Place
    target: Place
    is_stored: bool
    had_entry: bool
    leaves_entry: bool
    makes_entry: bool
    had_letter: bool
    leaves_letter: bool
    makes_letter: bool
    has_result: bool
    has_event: bool
    has_key: bool
    replaces: bool
    requires: tuple[Requirement, ...]
    audit: tuple[str, ...]
    """The names of the fields of its audit entry; none where it has no such entry."""
    changed: bytes


class Move:
    """One change on its way: its shape, and what its keys and texts are taken from.

    ``version`` is what the record must hold before it.
    """

    __slots__ = ("after", "change", "key_record", "replaces", "shape", "version", "was")

    def __init__(self, change: Change, *, replaces: str | None = None) -> None:
        after = change.after
        was = change.before or after
        stored = change.stored
        record = record_of(change)
        target = place_of(after)
        self.change = change
        self.was = was
        self.after = after
        self.key_record = None if record is None else json_text(record)
        self.replaces = replaces
        self.version = NO_VERSION if stored is None else stored.version
        # by position: with so many fields, names would take longer than all else here
        self.shape = Shape(
            None if change.before is None else was.status,
            after.status,
            place_of(change.before),
            target,
            stored is not None,
            was.entry_id is not None,
            was.entry_id is not None and was.entry_id != after.entry_id,
            after.entry_id is None and target in _IN_STREAMS,
            was.dlq_entry_id is not None,
            was.dlq_entry_id is not None and was.dlq_entry_id != after.dlq_entry_id,
            after.dlq_entry_id is None and target is _DEAD,
            change.result is not None,
            change.event is not None,
            self.key_record is not None,
            self.replaces is not None,
            change.requires,
            () if change.audit is None else tuple(audit_fields(change.audit)),
            compared(stored, after),
        )

    def made(self, new_id: str) -> Task:
        """Return the task as it is stored, with the id that the broker gave to its new entry, if it asked for one."""
        if self.shape.makes_entry:
            return replace(self.after, entry_id=EntryId(new_id))
        return replace(self.after, dlq_entry_id=EntryId(new_id)) if self.shape.makes_letter else self.after


def _always(name: str) -> Callable[[Move], str]:
    return lambda _: name


class Finder:
    """Finds the keys and texts of moves."""

    def __init__(self, keys: Keyspace, *, options: BackendOptions) -> None:
        self._keys: Final = keys
        self._retention: Final = options.retention
        self._streams: Final = lru_cache(maxsize=_QUEUES_KNOWN)(keys.streams)
        self._stream: Final = lru_cache(maxsize=_QUEUES_KNOWN)(keys.stream)
        self._paused: Final = lru_cache(maxsize=_QUEUES_KNOWN)(keys.paused)
        self.schedule: Final = _always(keys.schedule)
        self.claimed: Final = _always(keys.claimed)
        self.dead_letters: Final = _always(keys.dead_letters)
        self.recent: Final = _always(keys.recent)
        self.queues: Final = _always(keys.queues)
        self.cancelled: Final = _always(keys.cancelled)
        self.audit: Final = _always(keys.audit)
        self.events: Final = _always(keys.events)

    def record(self, move: Move) -> str:
        return self._keys.task(move.after.task_id)

    def stream(self, move: Move) -> str:
        return self._stream(move.after.queue, move.after.priority)

    def streams(self, move: Move) -> Sequence[str]:
        return self._streams(move.after.queue)

    def paused(self, move: Move) -> str:
        return self._paused(move.after.queue)

    def result_key(self, move: Move) -> str:
        return self._keys.result(move.after.task_id)

    def idempotency(self, move: Move) -> str:
        return self._keys.idempotency(move.after.queue, move.after.idempotency_key or "")

    def lifetime(self, move: Move) -> str:
        return milliseconds_text(task_lifetime(move.after, at=move.change.at, retention=self._retention))

    def key_lifetime(self, move: Move) -> str:
        return milliseconds_text(record_lifetime(move.after, at=move.change.at, retention=self._retention))

    @staticmethod
    def task_id(move: Move) -> str:
        return move.after.task_id

    @staticmethod
    def queue(move: Move) -> str:
        return move.after.queue

    @staticmethod
    def holder(move: Move) -> str:
        return move.change.holder or ""

    @staticmethod
    def entry_id(move: Move) -> str:
        entry_id = move.was.entry_id
        if entry_id is None:
            raise ValueError(f"task {move.was.task_id} names no entry, but its change requires something of one")
        return entry_id

    @staticmethod
    def letter_id(move: Move) -> str:
        # an id that is missing finds nothing, as the lowest one does
        return move.was.dlq_entry_id or "0-1"

    @staticmethod
    def payload(move: Move) -> str:
        payload = move.after.payload
        if payload is None:
            raise ValueError(f"{move.after.task_id}: neither the change nor the store has a payload")
        return payload

    @staticmethod
    def due(move: Move) -> str:
        return str(milliseconds(move.after.available_at))

    @staticmethod
    def created_at(move: Move) -> str:
        return str(milliseconds(move.after.created_at))

    @staticmethod
    def result(move: Move) -> str:
        return move.change.result or ""

    @staticmethod
    def event(move: Move) -> str:
        return "" if move.change.event is None else json_text(move.change.event)

    @staticmethod
    def audit_fields(move: Move) -> Iterable[str]:
        return () if move.change.audit is None else audit_fields(move.change.audit).values()

    @staticmethod
    def entry_fields(move: Move) -> Mapping[str, str]:
        return entry_fields(move.after)

    @staticmethod
    def letter_fields(move: Move) -> Mapping[str, str]:
        return dead_letter_fields(move.after)

    @staticmethod
    def key_record(move: Move) -> str:
        return move.key_record or ""

    @staticmethod
    def replaced_record(move: Move) -> str:
        return move.replaces or ""

    @staticmethod
    def record_prefix(move: Move) -> str:
        return record_prefix(move.after.task_id)

    @staticmethod
    def record_end(move: Move) -> str:
        return record_end(move.after.task_id)
