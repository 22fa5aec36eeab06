"""What a request that was caught on the line asks for: the commands of a step, and its keys."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from dtq.adapters.redis.keys import Keyspace
from dtq.adapters.redis.scripts import ALL
from dtq.adapters.redis.trials import trials

COMMANDS = frozenset(command[0] for command in trials(Keyspace("any"))[1])


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
    commands = _commands(words[3 + count]) if name in {"commit", "admit"} else frozenset[str]()
    return Request(script=name, keys=keys, commands=commands)


def commands_of_script(name: str) -> frozenset[str]:
    """Return every command that a script's text may run."""
    text = next(known.text for known in ALL if known.name == name)
    return frozenset(word.lower() for word in re.findall(r"(?:redis\.p?call|try)\('([A-Z]+)'", text))


def _words(message: bytes) -> list[bytes]:
    words: list[bytes] = []
    at = message.index(b"\r\n") + 2
    while at < len(message):
        end = message.index(b"\r\n", at)
        length = int(message[at + 1 : end])
        words.append(message[end + 2 : end + 2 + length])
        at = end + 2 + length + 2
    return words


def _commands(packed: bytes) -> frozenset[str]:
    """Collect the commands that run whatever is found: one that excuses a limit is asked only where it is reached."""
    found = {"time"}
    forms, _ = msgspec.msgpack.decode(packed)
    for record, guards, steps in forms:
        if record:
            found.add("hmget")
        for part in (*(guard[:3] for guard in guards), *steps):
            texts = set(_texts(part))
            found |= {text.lower() for text in texts & COMMANDS}
            found |= {"hget"} if "field" in texts else set()
    return frozenset(found)


def _texts(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    if isinstance(part, list):
        for one in part:
            yield from _texts(one)
