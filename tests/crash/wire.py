"""What a request that was caught on the line asks for: the commands of a step, and its keys."""

import re
from dataclasses import dataclass
from typing import Any

import msgspec

from dtq.adapters.redis.scripts import ALL
from dtq.adapters.redis.trials import rule_of


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
        all_guards = [*guards, *(step[1] for step in steps if len(step) > 1)]
        for command in (*(command for guard in all_guards for command in guard[2]), *(step[0] for step in steps)):
            found |= _of(command)
    return frozenset(found)


def _of(command: list[Any]) -> set[str]:
    if command[0] == "reply":
        return set()
    words, *rest = command
    finds = rest[2] if len(rest) > 2 else ()
    return {rule_of([str(word) for word in words]), *({"hget"} if "field" in str(finds) else ())}
