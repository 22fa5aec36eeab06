"""Text that strangers wrote, made safe to store, show and log."""

import re
from typing import Final

_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def clean(text: str, *, limit: int = 500) -> str:
    """Cut to *limit* characters, and replace control characters, line separators and lone surrogates by spaces."""
    return _UNSAFE.sub(" ", text[:limit])
