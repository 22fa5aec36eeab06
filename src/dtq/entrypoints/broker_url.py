"""The URL that names the broker: what is allowed in it, and how it is shown to people."""

import re
import ssl
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit, urlunsplit

ADAPTER_GROUP: Final = "dtq.brokers"
OWN_SCHEMES: Final = ("redis", "rediss", "memory")

_SERVER_SCHEMES: Final = frozenset({"redis", "rediss"})
_DATABASE: Final = re.compile(r"[0-9]{1,4}")
_WORD: Final = re.compile(r"[!-~]{1,100}")
_DEFAULT_PORT: Final = 6379
_PORT_WORDS: Final = "its port a number within 1..65535"


def announced(scheme: str) -> Iterable[EntryPoint]:
    """Return what installed packages offer for *scheme*: each loads to a dtq.ports.backend.Connect."""
    return entry_points(group=ADAPTER_GROUP, name=scheme)


def known_schemes() -> tuple[str, ...]:
    """Return the URL schemes that name a broker: our own and those that installed packages announce."""
    return (*OWN_SCHEMES, *sorted(point.name for point in entry_points(group=ADAPTER_GROUP)))


def redacted(url: str) -> str:
    """Return *url* without its password, and without anything that may hide one."""
    try:
        parts = urlsplit(url)
        password = parts.password
    except ValueError:
        return "(not shown: no valid URL)"
    if "@" in parts.path + parts.query + parts.fragment:
        # a password with / or # or ? that is not encoded ends the host too early
        return "(not shown: no valid URL)"
    hidden = {name: "***" for name in ("query", "fragment") if getattr(parts, name)}
    if password is None and "@" not in parts.netloc:
        return urlunsplit(parts._replace(**hidden))
    user, host = parts.username or "", parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{user}:***@{host}", **hidden))


def address_of(url: str) -> tuple[str, int] | None:
    """Return host and port of a Redis that *url* names; None where it names what only a third party knows to reach."""
    parts = urlsplit(url)
    if parts.scheme not in _SERVER_SCHEMES:
        return None
    return unquote(parts.hostname or ""), parts.port or _DEFAULT_PORT


def url_problem(text: str) -> str | None:
    """Say what keeps *text* from naming a broker, without repeating any of it, or None."""
    schemes = known_schemes()
    allowed_schemes = f"must be a URL whose scheme is one of {', '.join(schemes)}"
    if not text.isprintable() or text != text.strip():
        return "must be printable text without space around it; percent-encode what else is in its password"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        # what is wrong may be a part of the password
        return f"{allowed_schemes}, {_PORT_WORDS}, and / ? # @ [ ] in its password percent-encoded"
    if parts.scheme not in schemes:
        return allowed_schemes
    if parts.scheme not in _SERVER_SCHEMES:
        return None
    if port == 0 or parts.netloc.endswith(":"):
        return f"must have as {_PORT_WORDS}, or none for 6379"
    return _host_problem(parts) or _database_problem(parts) or _options_problem(parts)


def is_host(text: str) -> bool:
    """Tell whether *text* can be looked up at all, as a name or an address."""
    try:
        return text.isprintable() and " " not in text and bool(text.encode("idna"))
    except UnicodeError:
        return False


def _host_problem(parts: SplitResult) -> str | None:
    host = unquote(parts.hostname or "")
    if not host:
        return "must name a host, such as redis://localhost:6379/0"
    return None if is_host(host) else "its host must be a name or an address, such as localhost, 127.0.0.1 or [::1]"


def _database_problem(parts: SplitResult) -> str | None:
    if parts.fragment:
        return "must have no # part; percent-encode a # in its password as %23"
    if parts.path not in {"", "/"} and not _DATABASE.fullmatch(parts.path.removeprefix("/")):
        return "the path must be the number of a database within 0..9999, such as /0"
    return None


def _options_problem(parts: SplitResult) -> str | None:
    given = parse_qsl(parts.query, keep_blank_values=True)
    known = {**_OPTIONS, **(_TLS_OPTIONS if parts.scheme == "rediss" else {})}
    names = [name for name, _ in given]
    if set(names) - set(known):
        # not repeated: it may be a part of a password
        return f"its query must have no other options than {', '.join(sorted(known))}"
    if len(set(names)) < len(names):
        return "each option of its query must be given once"
    if "db" in names and parts.path not in {"", "/"}:
        return "must name its database once: in the path or as the option db"
    for name, value in given:
        problem = known[name](value)
        if problem is not None:
            return f"its option {name} must be {problem}"
    return None


def _word(what: str, pattern: re.Pattern[str]) -> Callable[[str], str | None]:
    return lambda text: None if pattern.fullmatch(text) else what


def _one_of(*words: str) -> Callable[[str], str | None]:
    return lambda text: None if text in words else f"one of {', '.join(words)}"


def _file(text: str) -> str | None:
    return None if Path(text).is_file() else "the name of a file that is there"


def _folder(text: str) -> str | None:
    return None if Path(text).is_dir() else "the name of a folder that is there"


def _text(text: str) -> str | None:
    return None if text.isprintable() and text else "a printable text"


_OPTIONS: Final[Mapping[str, Callable[[str], str | None]]] = {
    "client_name": _word("1 to 100 visible ASCII characters", _WORD),
    "db": _word("the number of a database within 0..9999", _DATABASE),
    "password": _text,
    "socket_keepalive": _one_of("true", "false", "True", "False", "1", "0"),
    "username": _text,
}
_TLS_OPTIONS: Final[Mapping[str, Callable[[str], str | None]]] = {
    "ssl_ca_certs": _file,
    "ssl_ca_path": _folder,
    "ssl_cert_reqs": _one_of("none", "optional", "required"),
    "ssl_certfile": _file,
    "ssl_check_hostname": _one_of("true", "false", "True", "False", "1", "0"),
    "ssl_keyfile": _file,
    "ssl_min_version": _one_of(*(str(int(one)) for one in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3))),
    "ssl_password": _text,
}
