"""Numbers on the command line: what the API takes for one, and nothing else that Python would."""

import math
from argparse import ArgumentTypeError
from datetime import timedelta
from typing import Final

import msgspec

from dtq.domain.text import clean

_LONGEST: Final = timedelta(days=365)
_SHOWN: Final = 40
"""How much of what is no number is repeated."""


def integer(text: str) -> int:
    """Read an integer. Raises ArgumentTypeError."""
    try:
        return msgspec.convert(text, int, strict=False)
    except msgspec.ValidationError as error:
        raise ArgumentTypeError(f"must be an integer, not {_shown(text)}") from error


def positive(text: str) -> int:
    """Read an integer above 0. Raises ArgumentTypeError."""
    value = integer(text)
    if value < 1:
        raise ArgumentTypeError(f"must be at least 1, not {_shown(text)}")
    return value


def number(text: str) -> float:
    """Read a finite number. Raises ArgumentTypeError."""
    try:
        value = msgspec.convert(text, float, strict=False)
    except msgspec.ValidationError:
        value = math.nan
    if not math.isfinite(value):
        raise ArgumentTypeError(f"must be a number, not {_shown(text)}")
    return value


def seconds(text: str) -> float:
    """Read how long something may take. Raises ArgumentTypeError."""
    value = number(text)
    if not 0 <= value <= _LONGEST.total_seconds():
        raise ArgumentTypeError(f"must be a number of seconds, not {_shown(text)}")
    return value


def _shown(text: str) -> str:
    return repr(clean(text, limit=_SHOWN))
