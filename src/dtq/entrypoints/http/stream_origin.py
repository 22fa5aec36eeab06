"""Whose pages may ask: a browser sends requests for any page, and only says where the page is from."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from dtq.domain.errors import DtqError
from dtq.domain.text import clean
from dtq.entrypoints.config import Settings, is_loopback

ANY: Final = "*"

_CROSS_SITE: Final = "cross-site"
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class OriginNotAllowed(DtqError):
    """A page of another host asks, and no operator has allowed it."""

    code = "ORIGIN_NOT_ALLOWED"

    def __init__(self, origin: str) -> None:
        super().__init__(f"pages from {clean(origin, limit=200)!r} may not ask for this; see DTQ_WS_ALLOWED_ORIGINS")


class Origins(Struct, frozen=True):
    """The origins that are allowed beside the host that is asked itself.

    Where only this machine can reach that host (*is_local*), it has no other names than those of this machine and of
    the allowed origins: whoever owns another name may let it lead here, and would pass for the host itself.
    """

    allowed: frozenset[str] = frozenset()
    is_local: bool = False

    def check(self, headers: Mapping[str, str]) -> str | None:
        """Return the foreign origin that asks and may; None for one's own pages and for what is no browser.

        Raises OriginNotAllowed.
        """
        origin = headers.get("origin")
        if origin is None and headers.get("sec-fetch-site") != _CROSS_SITE:
            return None
        if origin is not None and self._is_own(origin, host=headers.get("host", "")):
            return None
        if ANY in self.allowed or (origin is not None and origin.lower() in self.allowed):
            return origin
        raise OriginNotAllowed(origin or _CROSS_SITE)

    def may_be_asked(self, host: str) -> bool:
        """Tell whether what a request calls its host may be this API: elsewhere than on one machine, anything may."""
        if not self.is_local or not host:
            return True
        try:
            asked = urlsplit(f"//{host.lower()}")
        except ValueError:
            return False
        is_a_host = asked.netloc == host.lower() and "@" not in host
        return is_a_host and self._leads_here(asked.hostname or "")

    def _is_own(self, origin: str, *, host: str) -> bool:
        try:
            asking = urlsplit(origin.lower())
            asked = urlsplit(f"{asking.scheme}://{host.lower()}")
            is_same = bool(asking.hostname) and _address(asking) == _address(asked)
        except ValueError:
            return False
        return is_same and (not self.is_local or self._leads_here(asked.hostname or ""))

    def _leads_here(self, name: str) -> bool:
        return is_loopback(name) or name in {urlsplit(origin).hostname for origin in self.allowed}


def origins_of(settings: Settings) -> Origins:
    """Return who may watch."""
    return Origins(settings.origins, is_local=settings.is_local)


def origins_that_act(settings: Settings) -> Origins:
    """Return who may change something: a `*` lets everybody watch, and who is to do more must be named."""
    return Origins(settings.origins - {ANY}, is_local=settings.is_local)


def _address(url: SplitResult) -> tuple[str | None, int | None]:
    return url.hostname, url.port or _DEFAULT_PORTS.get(url.scheme)
