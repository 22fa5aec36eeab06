"""Whose pages may listen: a browser says where a page is from, and lets a WebSocket go anywhere."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from dtq.domain.errors import DtqError
from dtq.domain.text import clean

ANY: Final = "*"

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class OriginNotAllowed(DtqError):
    """A page of another host asks, and no operator has allowed it."""

    code = "ORIGIN_NOT_ALLOWED"

    def __init__(self, origin: str) -> None:
        super().__init__(f"pages from {clean(origin, limit=200)!r} may not listen here; see DTQ_WS_ALLOWED_ORIGINS")


class Origins(Struct, frozen=True):
    """The origins that are allowed beside the host that is asked itself."""

    allowed: frozenset[str] = frozenset()

    def check(self, headers: Mapping[str, str]) -> str | None:
        """Return the foreign origin that asks and may; None for one's own pages and for what is no browser.

        Raises OriginNotAllowed.
        """
        origin = headers.get("origin")
        if origin is None or _is_same_host(origin, host=headers.get("host", "")):
            return None
        if ANY in self.allowed or origin.lower() in self.allowed:
            return origin
        raise OriginNotAllowed(origin)


def _is_same_host(origin: str, *, host: str) -> bool:
    try:
        asking = urlsplit(origin.lower())
        asked = urlsplit(f"{asking.scheme}://{host.lower()}")
        return bool(asking.hostname) and _address(asking) == _address(asked)
    except ValueError:
        return False


def _address(url: SplitResult) -> tuple[str | None, int | None]:
    return url.hostname, url.port or _DEFAULT_PORTS.get(url.scheme)
