"""Strict JSON: checked as text, so that what a client sent is handed out as it was, and written without surprises."""

import math
import re
from typing import Final

import msgspec

MAX_DEPTH: Final = 64
"""How deep arrays and objects may nest."""

# Ends an open string at the end of the text: a pattern that cannot fail cannot be made to try again from every quote.
_STRINGS: Final = re.compile(r'"(?:[^"\\]+|\\.)*"?', re.DOTALL)
_LONE_SURROGATE: Final = re.compile(
    r"(?i)(?<!\\)(?:\\\\)*(?:\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2})"
)
_MAYBE_NOT_FINITE: Final = re.compile(rb'null|"-?(?:nan|inf)":')
"""What NaN and the infinities come out as, alone and as a key; other things may look like that too."""

_BRACKETS: Final = re.compile(r"[\[{\]}]")


class JsonProblem(ValueError):
    """The text is no JSON object that dtq accepts; the message says why."""


def object_problem(text: str) -> str | None:
    """Say what keeps *text* from being one JSON object within the nesting limit, or None.

    NaN, Infinity, numbers that overflow and lone surrogates are refused. Of duplicate members the last one counts.
    """
    try:
        parse_object(text)
    except JsonProblem as problem:
        return str(problem)
    return None


def parse_object(text: str) -> dict[str, object]:
    """Parse *text* as one JSON object. Raises JsonProblem."""
    value = parse(text)
    if not isinstance(value, dict):
        message = "must be a JSON object"
        raise JsonProblem(message)
    return value


def parse(text: str) -> object:
    """Parse *text* as one JSON value of any kind, within the same limits. Raises JsonProblem."""
    if is_too_deep(text):
        message = f"nested deeper than {MAX_DEPTH} levels"
        raise JsonProblem(message)
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise JsonProblem(malformed(error, text)) from error


def malformed(error: Exception, text: str) -> str:
    """Say what is wrong with a text that could not be parsed.

    The parser calls a lone surrogate a text that was cut, which would send its writer looking in the wrong place.
    """
    if isinstance(error, UnicodeEncodeError) or _LONE_SURROGATE.search(text):
        return "not valid JSON: a string has a lone surrogate, half of a pair that stands for one character"
    return f"not valid JSON: {error}"


def is_too_deep(text: str) -> bool:
    """Tell whether arrays and objects nest deeper than the limit; a count of brackets settles the common case."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    depth = deepest = 0
    for bracket in _BRACKETS.findall(_STRINGS.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest > MAX_DEPTH


def written(value: object) -> bytes:
    """Write *value* as JSON that `parse` reads.

    Raises ValueError for NaN or an infinity, as a key too, for text that is no Unicode, a Raw that is no JSON, and what
    nests too deep; TypeError or RecursionError for what has no form in JSON; and what objects of one's own raise while
    they are read.
    """
    text = encoded(value)
    parse(text.decode())
    return text


def encoded(value: object) -> bytes:
    """Write *value* as `written` does, without a look at what came out: a Raw is written as it is, whatever it holds.

    Of a text that is too large to keep, the size is enough to know.
    """
    text = msgspec.json.encode(value)
    if _MAYBE_NOT_FINITE.search(text) and _has_non_finite(msgspec.to_builtins(value)):
        message = "numbers must be finite"
        raise ValueError(message)
    return text


def _has_non_finite(value: object) -> bool:
    waiting = [value]
    while waiting:
        match waiting.pop():
            case float() as number if not math.isfinite(number):
                return True
            case dict() as members:
                waiting.extend(members.keys())
                waiting.extend(members.values())
            case list() | tuple() as items:
                waiting.extend(items)
            case _:
                pass
    return False
