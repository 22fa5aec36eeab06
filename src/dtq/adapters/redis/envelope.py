"""What one call of commit.lua carries: acts, with their keys and long texts numbered. The form is in commit.lua."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Final, TypeAlias, TypeVar

import msgspec

from dtq.adapters.redis.client import Argument as Sent
from dtq.ports.answers import TOKENS_REMEMBERED

MAX_ACTS: Final = 100
MAX_BYTES: Final = 1024 * 1024


class Answered(IntEnum):
    """How commit.lua answers an act."""

    MADE = 1
    KNOWN = 2
    MOVED = 3
    REFUSED = 4
    STOPPED = 5


Argument: TypeAlias = str | int | tuple[str, str] | tuple[str, int] | tuple[str]
Command: TypeAlias = tuple[Argument, ...]
Guard: TypeAlias = Sequence[object]
Step: TypeAlias = tuple[Command] | tuple[Command, Guard]

Item = TypeVar("Item")
Note = TypeVar("Note")

_FIRST_TEXT: Final = 4

_encode: Final = msgspec.msgpack.Encoder().encode


def stored_field(name: str) -> Argument:
    """Stand for a field of the act's record, as it is before the act."""
    return ("field", name)


TOKENS: Final = ("tokens",)
"""Stands for the tokens that the act's record is to remember."""

FIRST_REPLY: Final = ("reply", 1)
"""Stands for the reply of the act's first step."""


def among(texts: Sequence[str], command: Command) -> Guard:
    """Require that what *command* reads is one of *texts*."""
    return ("among", texts, (command,))


def below(limit: int, commands: Sequence[Command], *, unless: Command | None = None) -> Guard:
    """Require that what *commands* read adds up to less than *limit*; that *unless* reads 1 excuses."""
    return ("below", limit, commands) if unless is None else ("below", limit, commands, unless)


class Envelope:
    """Acts on their way to the server."""

    def __init__(self) -> None:
        self._acts: list[Sequence[object]] = []
        self._keys: dict[str, int] = {}
        self._texts: list[str] = []
        self._bytes = 0

    @property
    def keys(self) -> Sequence[str]:
        """Every key that the acts touch."""
        return tuple(self._keys)

    @property
    def is_full(self) -> bool:
        """Whether the next act belongs into another envelope."""
        return len(self._acts) >= MAX_ACTS or self._bytes >= MAX_BYTES

    def __len__(self) -> int:
        """Count the acts."""
        return len(self._acts)

    def key(self, name: str) -> int:
        """Return the number that stands for a key."""
        return self._keys.setdefault(name, len(self._keys) + 1)

    def text(self, text: str) -> int:
        """Return the number that stands for a long text, which travels beside the acts."""
        self._texts.append(text)
        self._bytes += len(text)
        return -(len(self._texts) + _FIRST_TEXT - 1)

    def add(
        self,
        *,
        steps: Sequence[Step],
        guards: Sequence[Guard] = (),
        record: int = 0,
        version: str = "",
        token: str = "",
    ) -> None:
        """Add one act; with a *record* it needs the *version* that this must hold, and the *token* it brings."""
        self._acts.append((record, version, token, guards, steps))

    def arguments(self, names: bytes) -> list[Sent]:
        """Return the script's arguments; *names* are the fields of a snapshot."""
        return [_encode(self._acts), names, TOKENS_REMEMBERED, *self._texts]


def envelopes(
    items: Iterable[Item], add: Callable[[Envelope, Item], Note]
) -> Iterator[tuple[Envelope, list[tuple[Item, Note]]]]:
    """Put one act an item into as few envelopes as hold them, each returned with its items and what *add* noted."""
    envelope, batch = Envelope(), list[tuple[Item, Note]]()
    for item in items:
        if envelope.is_full:
            yield envelope, batch
            envelope, batch = Envelope(), []
        batch.append((item, add(envelope, item)))
    if batch:
        yield envelope, batch
