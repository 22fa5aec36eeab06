"""What a request that was caught on the line asks for: the commands of a step, and its keys."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dtq.adapters.redis.keys import Keyspace
from dtq.adapters.redis.scripts import ALL
from dtq.adapters.redis.trials import trials
from tests.adapters.redis.sent import members

COMMANDS = frozenset(command[0] for command in trials(Keyspace("any"))[1])

_BEFORE_FORMS = 2
"""How many arguments of the commit script come before its forms; commit.lua has the layout."""

_GUARD, _STEP = 6, 5
"""How many members of a form a guard is, and a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call of a script. ``commands`` is empty where the script, not the request, decides about them."""

    script: str
    keys: tuple[str, ...]
    commands: frozenset[str]


def read(message: bytes) -> Request:
    """Read a request of a script."""
    words = _words(message)
    assert words[0].upper() == b"EVALSHA", words[0]
    name = next(known.name for known in ALL if known.digest.encode() == words[1])
    count = int(words[2])
    keys = tuple(word.decode() for word in words[3 : 3 + count])
    arguments = words[3 + count :]
    if name == "turn":
        # what is fetched besides has a point of its own
        keys = keys[int(arguments[0]) :]
        arguments = arguments[2 + int(arguments[1]) :]
    commands = _commands(arguments[_BEFORE_FORMS:]) if name in {"commit", "admit", "turn"} else frozenset[str]()
    return Request(script=name, keys=keys, commands=commands)


def commands_of_script(name: str) -> frozenset[str]:
    """Return every command that a script's text may run."""
    text = next(known.text for known in ALL if known.name == name)
    return frozenset(word.lower() for word in re.findall(r"(?:redis\.p?call|\bcall|try)\('([A-Z]+)'", text))


def _words(message: bytes) -> list[bytes]:
    words: list[bytes] = []
    at = message.index(b"\r\n") + 2
    while at < len(message):
        end = message.index(b"\r\n", at)
        length = int(message[at + 1 : end])
        words.append(message[end + 2 : end + 2 + length])
        at = end + 2 + length + 2
    return words


def _commands(forms: Sequence[bytes]) -> frozenset[str]:
    """Collect the commands that run whatever is found: one that excuses a limit is asked only where it is reached."""
    found = {"time"}
    for packed in forms:
        form = ["", *members(packed)]
        record, guards, steps, end = form[1], *form[7:10]
        if record:
            found.add("hmget")
        places = [place for at in range(guards, steps, _GUARD) for place in _of_guard(form[at : at + _GUARD])]
        for at in range(steps, end, _STEP):
            first, last, finds, own, _ = form[at : at + _STEP]
            places += [(first, last), *(_of_guard(form[own : own + _GUARD]) if own else ())]
            places += [(finds, form[finds])] if finds else []
        texts = {
            text for first, last in places if first > 0 for text in form[first : last + 1] if isinstance(text, str)
        }
        found |= {text.lower() for text in texts & COMMANDS}
        found |= {"hget"} if "field" in texts else set()
    return frozenset(found)


def _of_guard(guard: Sequence[Any]) -> Sequence[Sequence[int]]:
    """Return the first and last places of what a guard always reads."""
    limit, *named, first, last, _ = guard
    return [named] if limit >= 0 else [[first, last]]
