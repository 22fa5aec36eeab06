"""What one call of commit.lua carries: acts, their keys, and the forms that acts of a kind share.

Most acts of a call are of few forms, which differ in some texts and keys only. A form travels once a call, and is
written once a process; an act is a flat list of what is its own. The layout is in commit.lua.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from functools import lru_cache
from itertools import accumulate, chain, count
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from dtq.adapters.redis.client import Argument as Sent
from dtq.ports.answers import TOKENS_REMEMBERED

MAX_ACTS: Final = 100
MAX_BYTES: Final = 1024 * 1024
FORMS_KNOWN: Final = 256
"""How many forms a process keeps written."""


class Answered(IntEnum):
    """How commit.lua answers an act."""

    MADE = 1
    """But for steps whose own guard did not hold; one that was made as a whole is answered by a text."""
    KNOWN = 2
    MOVED = 3
    REFUSED = 4
    STOPPED = 5


Argument: TypeAlias = str | int | tuple[str, str] | tuple[str]
"""Text that belongs to the form, the number of one of the act's keys or texts, or what the script finds out."""

Command: TypeAlias = tuple[Argument, ...]
Count: TypeAlias = tuple[str, int]
"""A command that counts what is in a key, and the number of that key."""
Guard: TypeAlias = tuple[Any, ...]
Step: TypeAlias = tuple[Command] | tuple[Command, Guard] | tuple[Command, int]

Item = TypeVar("Item")

_FIRST_NAMED: Final = 12
"""The place in a form of the first member that others name; its head is before it."""

_SPARE: Final = _FIRST_NAMED - 1
"""The place in a form of what no command names."""

_AMONG: Final = -1
"""Stands for the limit in a guard that has none."""

_JUST_RUN: Final = -1
"""Stands for the number of words that are each act's own in a step that is not to be run twice."""

_REPLY: Final = (0, 0, 0)
_NO_COMMAND: Final = (-1, 0, 0)
"""Stand for the places of a command where the first reply is read, or nothing."""
_SHORT: Final = 15
_MEDIUM: Final = 65_535
_encode: Final = msgspec.msgpack.Encoder().encode


def stored_field(name: str) -> Argument:
    """Stand for a field of the act's record, as it is before the act."""
    return ("field", name)


TOKENS: Final = ("tokens",)
"""Stands for the tokens that the act's record is to remember."""

TOKEN: Final = 0
"""The number that stands for the token of the act."""

FIRST_REPLY: Final = ("reply",)
"""Stands for the reply of the act's first step."""


def among(texts: Sequence[str | int], command: Command) -> Guard:
    """Require that what *command* reads is one of *texts*."""
    return ("among", tuple(texts), (command,))


def below(limit: int, counts: Sequence[Count], *, unless: Command | None = None) -> Guard:
    """Require that *counts* add up to less than *limit*; that *unless* reads 1 excuses."""
    return ("below", limit, tuple(counts), *(() if unless is None else (unless,)))


def together(command: Command, *, own: int) -> Step:
    """Run a command once for all acts of a call, when these are made, with the last *own* words of each act.

    The words before them are the same in all acts whose steps have this command and key. It is no act's first step.
    """
    return (command, own)


def unless_just_run(command: Command) -> Step:
    """Run a command unless it was run for the act before, which had the same word behind the key."""
    return (command, _JUST_RUN)


class Written:
    """A form as commit.lua reads it. Each is one of its own: another of the same text is sent beside it."""

    __slots__ = ("text",)

    def __init__(self, text: bytes) -> None:
        self.text = text


class Envelope:
    """Acts on their way to the server. Numbers stand for the keys and texts of the act that is added next.

    ``needs_memory`` tells whether a server without free memory is to refuse them all.
    """

    def __init__(self) -> None:
        # the members of all acts, one after the other
        self._members: list[object] = []
        self._count = 0
        # each numbers what it is asked for, from 1
        self._forms: defaultdict[Written, int] = defaultdict(count(1).__next__)
        self._keys: defaultdict[str, int] = defaultdict(count(1).__next__)
        self._act_keys: dict[str, int] = {}
        self._act_texts: list[str] = []
        self._bytes = 0
        self.needs_memory = False

    @property
    def keys(self) -> Sequence[str]:
        """Every key that the acts touch."""
        return tuple(self._keys)

    @property
    def is_full(self) -> bool:
        """Whether the next act belongs into another envelope."""
        return self._count >= MAX_ACTS or self._bytes >= MAX_BYTES

    def __len__(self) -> int:
        """Count the acts."""
        return self._count

    def key(self, name: str) -> int:
        """Return the number that stands for a key."""
        return self._act_keys.setdefault(name, len(self._act_keys) + 1)

    def text(self, text: str) -> int:
        """Return the number that stands for a text of this act, which others of its form have another of."""
        self._act_texts.append(text)
        return -len(self._act_texts)

    def fields(self, flat: Sequence[str]) -> list[Argument]:
        """Return names and values, in turn, with numbers for the values: the names are those of the form."""
        words: list[Argument] = [*flat]
        first = len(self._act_texts) + 1
        self._act_texts += flat[1::2]
        words[1::2] = range(-first, -first - len(flat) // 2, -1)
        return words

    def add(
        self,
        *,
        steps: Iterable[Step],
        guards: Iterable[Guard] = (),
        record: int = 0,
        version: str = "",
        token: str = "",
    ) -> None:
        """Add one act; with a *record* it needs the *version* that this must hold, and the *token* it brings."""
        form = written(record, (len(self._act_texts), len(self._act_keys)), tuple(guards), tuple(steps))
        self.put(form, keys=self._act_keys, texts=self._act_texts, version=version, token=token)
        self._act_keys, self._act_texts = {}, []

    def put(self, form: Written, *, keys: Iterable[str], texts: Sequence[str], version: str, token: str) -> None:
        """Add one act of a form that is written already, by its keys and texts in the order of their numbers."""
        self._members += (self._forms[form], version, token, *texts, *map(self._keys.__getitem__, keys))
        self._count += 1
        self._bytes += len("".join(texts))

    def arguments(self) -> list[Sent]:
        """Return the script's arguments."""
        return [_bare(self._members), TOKENS_REMEMBERED, *[form.text for form in self._forms]]


def _bare(members: list[object]) -> bytes:
    """Write members one after the other, without the head that makes an array of them."""
    number = len(members)
    return _encode(members)[1 if number <= _SHORT else 3 if number <= _MEDIUM else 5 :]


@lru_cache(maxsize=FORMS_KNOWN)
def written(record: int, counts: tuple[int, int], guards: tuple[Guard, ...], steps: tuple[Step, ...]) -> Written:
    """Write a form for commit.lua: its commands, and where in them the *counts* of texts and keys of an act go."""
    form = _Writing()
    required = list[int](chain.from_iterable(map(form.guard, guards)))
    made = list[int](chain.from_iterable(form.step(*step) for step in steps))
    own = [command for command, *beside in steps if not beside or not isinstance(beside[0], int)]
    touched = {form.place(word) for command in own for word in command if isinstance(word, int) and word > 0}
    texts = [form.place(-number) for number in range(counts[0] + 1)]
    keys = [form.place(number + 1) for number in range(counts[1])]
    parts = (texts, keys, form.copies(), sorted(touched), form.asked, required, made)
    begins = accumulate([len(part) for part in parts], initial=_FIRST_NAMED + len(form.named))
    head = (form.place(record) if record else 0, *begins, False, "")
    return Written(_bare([*head, *form.named, *chain.from_iterable(parts)]))


class _Writing:
    """What a form that is being written names, and where in it stands what is an act's own."""

    def __init__(self) -> None:
        self.named: list[object] = []
        self.asked: list[int] = []
        self._places: Final[defaultdict[int, list[int]]] = defaultdict(list)
        self._names: Final[set[object]] = set()

    def place(self, number: int) -> int:
        """Return the first place of the key or text of a number."""
        return self._places[number][0] if number in self._places else _SPARE

    def copies(self) -> list[int]:
        """Return each further place of a key or text, and its first one."""
        return [at for first, *further in self._places.values() for place in further for at in (place, first)]

    def step(self, command: Command, beside: Guard | int | None = None) -> tuple[int, ...]:
        """Write a step, with its own guard if it has one, and what of it is shared."""
        words = self._command(command)
        self._ask(*words)
        if beside is None:
            return (*words, 0, 0)
        if isinstance(beside, int):
            _, last, _ = words
            return (*words, 0, -self._name([""])[0] if beside == _JUST_RUN else last + 1 - beside)
        guard = self.guard(beside)
        # it is read between the writes
        self._ask(*guard[-len(words) :])
        return (*words, self._name(guard)[0], 0)

    def guard(self, guard: Guard) -> tuple[int, ...]:
        """Write what a guard reads, and what is to be found."""
        kind, bound, reads, *excuse = guard
        if kind == "below":
            counts = self._words([word for count in reads for word in count])
            return (bound, *counts, *(self._command(*excuse) if excuse else _NO_COMMAND))
        return (_AMONG, *self._words(bound), *self._command(*reads))

    def _ask(self, first: int, last: int, _: int) -> None:
        """Have the server asked for the command in these places, and its next two words, once a form."""
        if first > 0 and self.named[first - _FIRST_NAMED] not in self._names:
            self._names.add(self.named[first - _FIRST_NAMED])
            self.asked += (first, min(last, first + 2))

    def _command(self, command: Command) -> tuple[int, int, int]:
        """Name its words; return where they are, and where it is told what the script finds for some of them."""
        if command == FIRST_REPLY:
            return _REPLY
        first, last = self._words(command)
        found = [(at, *word) for at, word in enumerate(command, first) if isinstance(word, tuple)]
        if not found:
            return first, last, 0
        members = [member for at, kind, *which in found for member in (at, kind, *(which or [""]))]
        at = _FIRST_NAMED + len(self.named)
        self._name([at + len(members), *members])
        return first, last, at

    def _words(self, words: Sequence[Argument]) -> tuple[int, int]:
        """Name words, with room for what is an act's own or is found."""
        first, last = self._name([word if isinstance(word, str) else "" for word in words])
        for at, word in enumerate(words, first):
            if isinstance(word, int):
                self._places[word].append(at)
        return first, last

    def _name(self, members: Sequence[object]) -> tuple[int, int]:
        """Put members where they can be named; return the first and the last place."""
        first = _FIRST_NAMED + len(self.named)
        self.named += members
        return first, first + len(members) - 1


def envelopes(
    items: Iterable[Item], add: Callable[[Envelope, Item], None]
) -> Iterator[tuple[Envelope, Sequence[Item]]]:
    """Put one act an item into as few envelopes as hold them, each returned with its items."""
    envelope = Envelope()
    batch: list[Item] = []
    for item in items:
        if envelope.is_full:
            yield envelope, batch
            envelope, batch = Envelope(), []
        add(envelope, item)
        batch.append(item)
    if batch:
        yield envelope, batch
