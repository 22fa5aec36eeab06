"""What commit.lua is given for a change, its numbers replaced by what they stand for."""

from collections.abc import Sequence
from typing import Any

import msgspec

from dtq.adapters.redis.codec import ChangedFields, compared
from dtq.adapters.redis.description import Forms
from dtq.adapters.redis.envelope import Envelope
from dtq.adapters.redis.keys import Keyspace
from dtq.adapters.redis.moves import Move
from dtq.domain.admission import BrokerLimits
from dtq.domain.change import Change
from dtq.domain.task import Task
from dtq.ports.backend import BackendOptions


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """One act: its guards, its steps each with the guard of its own, and every key of it."""

    record: str
    version: str
    token: str
    guards: list[tuple[Any, ...]]
    steps: list[list[object]]
    own_guards: list[tuple[Any, ...]]
    keys: set[str]


def new_forms(options: BackendOptions) -> Forms:
    """Forms of which none is described yet."""
    return Forms(Keyspace(options.key_prefix), options=options)


def sent(change: Change, *, forms: Forms, limits: BrokerLimits | None = None, replaces: str | None = None) -> Sent:
    """Put *change* alone into an envelope; with *limits* as a submission, which may replace an idempotency record."""
    envelope, move = Envelope(), Move(change, replaces=replaces)
    form = forms.of_change(move) if limits is None else forms.of_admission(move, limits=limits)
    form.fill(envelope, move, version=move.version, token=change.after.version)
    packed, *_ = envelope.arguments(b"")
    assert isinstance(packed, bytes)
    forms_sent, (act,) = msgspec.msgpack.decode(packed)
    record, guards, steps = forms_sent[act[0] - 1]
    reader = _Reader(act, envelope.keys)
    return Sent(
        record=reader.key(record),
        version=act[1],
        token=act[2],
        guards=[reader.guard(guard) for guard in guards],
        steps=[reader.words(command) for command, *_ in steps],
        own_guards=[reader.guard(guard) for _, *own in steps for guard in own],
        keys=set(envelope.keys),
    )


def written(before: Task | None, after: Task) -> list[str]:
    """Return names and values, in turn, of the record's fields that a change writes."""
    fields = ChangedFields(compared(before, after))
    return [text for pair in zip(fields.names, fields.texts(after), strict=True) for text in pair]


class _Reader:
    def __init__(self, act: Sequence[Any], keys: Sequence[str]) -> None:
        self._act = act
        self._keys = keys

    def key(self, place: int) -> str:
        return self._keys[int(self._act[place - 1]) - 1]

    def words(self, command: Any) -> list[object]:
        words, named, given, *finds = command
        filled = [*words]
        for at, place in zip(named[::2], named[1::2], strict=True):
            filled[at - 1] = self.key(place)
        for at, place in zip(given[::2], given[1::2], strict=True):
            filled[at - 1] = self._act[place - 1]
        for found in finds:
            for at, what in zip(found[::2], found[1::2], strict=True):
                filled[at - 1] = tuple(what)
        return filled

    def guard(self, guard: Any) -> tuple[Any, ...]:
        kind, bound, reads, *excuse = guard
        if kind == "below":
            counted = [(name, self.key(place)) for name, place in zip(reads[::2], reads[1::2], strict=True)]
            return (kind, bound, counted, *map(self.words, excuse))
        texts = [text if isinstance(text, str) else self._act[text - 1] for text in bound]
        return (kind, texts, *map(self.words, reads))
