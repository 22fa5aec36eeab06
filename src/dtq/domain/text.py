"""Text that strangers wrote, made safe to store, show and log."""

import re
from typing import Final

_NAME: Final = vars(type)["__name__"]
_REORDERING: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_UNSAFE: Final = re.compile(f"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{_REORDERING}]")


def clean(text: str, *, limit: int = 500) -> str:
    """Cut to *limit* characters, and replace by spaces what could forge a line or make it read other than it is.

    That is control characters, line separators, lone surrogates, and the marks that reorder text.
    """
    return _UNSAFE.sub(" ", text[:limit])


def text_of(value: object) -> str:
    """Return the text of *value*, or a stand-in where it has none. Never raises, and neither does what it returns.

    Whatever a stranger's ``__str__`` returns may be a str of its own kind, whose methods raise in their turn.
    """
    try:
        return str.__str__(str(value))
    except BaseException as broken:  # noqa: BLE001 - a stranger's __str__ may raise anything, and must not end the worker
        return f"no message: __str__ raised {class_name(broken)}"


def class_name(value: object) -> str:
    """Return the name of the class that *value* really is of, whatever it or its metaclass says of itself."""
    name: str = _NAME.__get__(type(value))
    return str.__str__(name)
