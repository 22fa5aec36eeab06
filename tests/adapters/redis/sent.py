"""What commit.lua is given for a change, its numbers replaced by what they stand for."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

import msgspec

from dtq.adapters.redis.codec import VERSION, ChangedFields, compared
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
    packed, _, written_form = envelope.arguments()
    reader = _Reader(members(written_form), act=members(packed), keys=envelope.keys)
    return reader.sent()


def members(packed: object) -> list[Any]:
    """Read what is written one after the other, however many they are."""
    assert isinstance(packed, bytes)
    for number in range(len(packed) + 1):
        with suppress(msgspec.DecodeError):
            return cast("list[Any]", msgspec.msgpack.decode(b"\xdd" + number.to_bytes(4) + packed))
    raise AssertionError(packed)


def written(before: Task | None, after: Task) -> list[str]:
    """Return names and values, in turn, of the record's fields that a change writes."""
    fields = ChangedFields(compared(before, after))
    changed = [text for pair in zip(fields.names, fields.texts(after), strict=True) for text in pair]
    return [*changed, VERSION, after.version]


class _Reader:
    """Fills a form as commit.lua does. Places count from 1."""

    def __init__(self, form: list[Any], *, act: Sequence[Any], keys: Sequence[str]) -> None:
        self._act = act
        self._keys = keys
        self._form = ["", *form]
        self._record, *self._begins = form[:9]
        own = [*self._part(0), *self._part(1)]
        texts = len(self._part(0))
        for (at,), value in zip(own, act[2:], strict=True):
            self._form[at] = value
        for (at,) in own[texts:]:
            self._form[at] = keys[self._form[at] - 1]
        for at, first in self._part(2, of=2):
            self._form[at] = self._form[first]

    def sent(self) -> Sent:
        """Tell what the act is."""
        steps = self._part(6, of=5)
        return Sent(
            record=self._form[self._record] if self._record else "",
            version=self._act[1],
            token=self._act[2],
            guards=[self._guard(guard) for guard in self._part(5, of=6)],
            steps=[self._words(*command) for *command, _, _ in steps],
            own_guards=[self._guard(self._form[at : at + 6]) for *_, at, _ in steps if at],
            keys=set(self._keys),
        )

    def _part(self, number: int, *, of: int = 1) -> list[list[Any]]:
        first, last = self._begins[number : number + 2]
        return [self._form[at : at + of] for at in range(first, last, of)]

    def _words(self, first: int, last: int, finds: int) -> list[object]:
        words = self._form[first : last + 1] if first else []
        found = self._form[finds + 1 : self._form[finds] + 1] if finds else []
        for at, kind, which in zip(found[::3], found[1::3], found[2::3], strict=True):
            words[at - first] = (kind, which) if which else (kind,)
        return words

    def _guard(self, guard: Sequence[Any]) -> tuple[Any, ...]:
        limit, first, last, *command = guard
        named = self._form[first : last + 1]
        if limit < 0:
            return ("among", named, self._words(*command))
        counted = list(zip(named[::2], named[1::2], strict=True))
        return ("below", limit, counted, *([self._words(*command)] if command[0] > 0 else []))
