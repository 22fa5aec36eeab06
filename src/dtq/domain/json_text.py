"""Strict JSON: checked as text, so that what a client sent is handed out as it was, and written without surprises."""

import math
import re
from array import array
from itertools import accumulate
from typing import Final

import msgspec

MAX_DEPTH: Final = 64
"""How deep arrays and objects may nest."""

_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_AS_STEPS: Final = bytes.maketrans(b"[{]}", array("b", [1, 1, -1, -1]).tobytes())

# The parser takes 10 us for each number of such a size, a hundred times as long as for others: half a second a payload.
# It is looked for from the digit on that stands before each exponent, since texts have more e's than digits.
_SLOW_NUMBER: Final = re.compile(r"[0-9][eE]\+?0*[23][0-9]{2}")
_LONE_SURROGATE: Final = re.compile(
    r"(?i)(?<!\\)(?:\\\\)*(?:\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2})"
)


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
        return (_decode_slow if has_slow_numbers(text) else _decode)(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise JsonProblem(malformed(error, text)) from error


def has_slow_numbers(text: str) -> bool:
    """Tell whether *text* has numbers that take the plain parser very long."""
    # to look for one letter takes a fiftieth of the time, and settles most texts
    may_have = ("2" in text or "3" in text) and ("e" in text or "E" in text)
    return may_have and _SLOW_NUMBER.search(text) is not None


def malformed(error: Exception, text: str) -> str:
    """Say what is wrong with a text that could not be parsed.

    The parser calls a lone surrogate a text that was cut, which would send its writer looking in the wrong place.
    """
    if isinstance(error, UnicodeEncodeError) or _LONE_SURROGATE.search(text):
        return "not valid JSON: a string has a lone surrogate, half of a pair that stands for one character"
    return f"not valid JSON: {error}"


def is_too_deep(text: str) -> bool:
    """Tell whether arrays and objects nest deeper than the limit; a count of brackets settles the common case.

    Strangers choose how many brackets there are, so the interpreter makes no step for each.
    """
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    if "\\" in text:
        # whatever a backslash escapes, only a quote matters here, and the backslash before it
        text = text.replace("\\\\", "").replace('\\"', "")
    outside = "".join(text.split('"')[::2]).encode("utf-8", "surrogatepass")
    steps = array("b", outside.translate(_AS_STEPS, _NOT_BRACKETS))
    return max(accumulate(steps), default=0) > MAX_DEPTH


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        message = "Number out of range"
        raise msgspec.ValidationError(message)
    return value


_decode: Final = msgspec.json.Decoder().decode
_decode_slow: Final = msgspec.json.Decoder(float_hook=_finite).decode
"""Reads the same, by a step for each number with a point or an exponent."""


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
    # what NaN and the infinities come out as, alone and as a key; other things may look like that too
    is_suspect = b"null" in text or b'nan":' in text or b'inf":' in text
    if is_suspect and _has_non_finite(msgspec.to_builtins(value)):
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
