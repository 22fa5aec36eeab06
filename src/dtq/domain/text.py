"""Text that strangers wrote, made safe to store, show and log."""

import re
from typing import Final

_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def clean(text: str, *, limit: int = 500) -> str:
    """Replace control characters, line separators and lone surrogates by spaces, then cut to *limit* characters."""
    return _UNSAFE.sub(" ", text[: limit * 2])[:limit]
