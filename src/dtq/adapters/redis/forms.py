"""Forms that are described once for all acts of a kind, with what finds the keys and texts of each act.

A description works on a blank: where a command has what is an act's own, it names the function that finds it in any
act of the kind. So the form and the acts that fill it come from one description.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

from dtq.adapters.redis.envelope import Argument, Command, Envelope, Guard, Step, Written, written

Act = TypeVar("Act")
Meaning = TypeVar("Meaning")
"""What it means for the caller that a guard refuses."""


class _Places(Generic[Act]):
    """What finds the keys, or the texts, of an act, in order; *finds* tells of each whether it finds one or several."""

    def __init__(self) -> None:
        self.finds: Final[list[tuple[bool, Callable[[Act], Any]]]] = []
        self.count = 0
        self._numbers: Final[dict[object, int]] = {}

    def first(self, find: Callable[[Act], Any], *, several: int | None = None) -> int:
        """Return the number of what is found, or the first of *several*; the same one where it is known already."""
        if find not in self._numbers:
            self._numbers[find] = self.count + 1
            self.finds.append((several is None, find))
            self.count += 1 if several is None else several
        return self._numbers[find]

    def found(self, act: Act) -> list[str]:
        """Return the keys or texts of an act."""
        found: list[str] = []
        for is_one, find in self.finds:
            if is_one:
                found.append(find(act))
            else:
                found += find(act)
        return found


class Blank(Generic[Act]):
    """A form that is being described. Numbers stand for the keys and texts that each act of the kind has.

    ``sample`` is one of these acts, for names and numbers that all of them have in common.
    """

    def __init__(self, sample: Act) -> None:
        self.sample: Final = sample
        self._keys: Final = _Places[Act]()
        self._texts: Final = _Places[Act]()

    def key(self, find: Callable[[Act], str]) -> int:
        """Return the number that stands for a key."""
        return self._keys.first(find)

    def keys(self, find: Callable[[Act], Sequence[str]]) -> Sequence[int]:
        """Return the numbers that stand for several keys."""
        several = len(find(self.sample))
        first = self._keys.first(find, several=several)
        return range(first, first + several)

    def text(self, find: Callable[[Act], str]) -> int:
        """Return the number that stands for a text."""
        return -self._texts.first(find)

    def fields(self, names: Sequence[str], find: Callable[[Act], Iterable[str]]) -> list[Argument]:
        """Return names, each with the number behind it that stands for its text."""
        first = self._texts.first(find, several=len(names))
        return [word for at, name in enumerate(names) for word in (name, -first - at)]

    def filled(self, command: Command, others: Mapping[Argument, str]) -> list[str]:
        """Return a command with the keys and texts of the sample in it, and *others* for what is neither."""
        keys, texts = self._keys.found(self.sample), self._texts.found(self.sample)

        def text(word: Argument) -> str:
            if isinstance(word, int) and word:
                return keys[word - 1] if word > 0 else texts[-word - 1]
            return word if isinstance(word, str) else others[word]

        return [text(word) for word in command]

    def form(
        self, guards: Sequence[tuple[Meaning, Guard]], *, steps: Iterable[Step], record: int, needs_memory: bool
    ) -> "Form[Act, Meaning]":
        """Return what was described; each guard comes with its meaning, *record* is the number of a key."""
        counts = (self._texts.count, self._keys.count)
        text = written(record, counts, tuple([guard for _, guard in guards]), tuple(steps))
        meanings = tuple([meaning for meaning, _ in guards])
        return Form(text, meanings=meanings, needs_memory=needs_memory, keys=self._keys, texts=self._texts)


class Form(Generic[Act, Meaning]):
    """A form that acts fill. ``meanings`` has one for each guard."""

    def __init__(
        self,
        text: Written,
        *,
        meanings: Sequence[Meaning],
        needs_memory: bool,
        keys: _Places[Act],
        texts: _Places[Act],
    ) -> None:
        self.meanings: Final = meanings
        self._needs_memory: Final = needs_memory
        self._text: Final = text
        self._keys: Final = keys
        self._texts: Final = texts

    def fill(self, envelope: Envelope, act: Act, *, version: str, token: str) -> None:
        """Put an act into *envelope*."""
        if self._needs_memory:
            envelope.needs_memory = True
        keys, texts = self._keys.found(act), self._texts.found(act)
        envelope.put(self._text, keys=keys, texts=texts, version=version, token=token)
