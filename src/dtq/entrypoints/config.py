"""Settings from DTQ_ variables, checked all at once at start; nothing else reads the environment."""

import ipaddress
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import FieldInfo, fields

from dtq.domain.admission import MAX_TIMEOUT_MS, QUEUE_PATTERN
from dtq.domain.workers import WORKER_ID_PATTERN
from dtq.entrypoints.broker_url import is_host, redacted, url_problem
from dtq.ports.backend import DEAD_LETTER_LIMIT

PREFIX: Final = "DTQ_"
TEST_PREFIX: Final = "DTQ_TEST_"
WS_PATH_PATTERN: Final = re.compile(r"(/[A-Za-z0-9._~-]{1,64}){1,8}")
ORIGIN_PATTERN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/,?#@]+", re.IGNORECASE)
KEY_PREFIX_PATTERN: Final = re.compile(r"(?=.{1,64}\Z)[A-Za-z0-9_.:-]*(\{[A-Za-z0-9_.:-]+\})?[A-Za-z0-9_.:-]*")

Port = Annotated[int, Meta(ge=0, le=65_535)]
Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Seconds = Annotated[float, Meta(ge=0, le=1_000_000_000)]


class Settings(Struct, frozen=True, kw_only=True):
    """What operators set. Each field is the DTQ_ variable of its name; times are in the unit that the name ends with.

    ``repr`` shows no secret.
    """

    redis_url: str = "redis://localhost:6379/0"
    key_prefix: str = "dtq"
    api_host: str = "0.0.0.0"  # noqa: S104 - the contract's default; the API warns where nothing guards it
    api_port: Port = 8000
    api_key: str = ""
    ws_path: str = "/ws/events"
    ws_buffer: Annotated[int, Meta(ge=1, le=1_000_000)] = 1000
    ws_allowed_origins: str = ""
    ws_max_clients: Annotated[int, Meta(ge=1, le=100_000)] = 1000
    worker_concurrency: Annotated[int, Meta(ge=1, le=1000)] = 4
    worker_id: str = ""
    worker_queue: str = "default"
    worker_metrics_port: Port = 0
    task_modules: str = ""
    visibility_timeout_s: Annotated[float, Meta(ge=1, le=86_400)] = 30.0
    heartbeat_interval_s: Annotated[float, Meta(ge=0.05, le=3600)] = 5.0
    drain_timeout_s: Annotated[float, Meta(ge=0, le=86_400)] = 30.0
    max_queue_depth: Count = 10_000
    max_scheduled: Count = 100_000
    max_queues: Annotated[int, Meta(ge=1, le=100_000)] = 1000
    max_payload_bytes: Annotated[int, Meta(ge=2, le=64 * 1024 * 1024)] = 262_144
    max_batch_bytes: Annotated[int, Meta(ge=1024, le=48 * 1024 * 1024)] = 16 * 1024 * 1024
    max_attempts: Annotated[int, Meta(ge=1, le=100)] = 10
    task_timeout_ms: Annotated[int, Meta(ge=1, le=MAX_TIMEOUT_MS)] = 30_000
    retry_base_delay: Annotated[float, Meta(ge=0.001, le=86_400)] = 1.0
    retry_max_delay: Annotated[float, Meta(ge=0.001, le=86_400)] = 60.0
    retry_jitter: Annotated[float, Meta(ge=0, le=1)] = 0.2
    task_retention_s: Annotated[int, Meta(ge=1, le=315_360_000)] = 604_800
    result_retention_s: Annotated[int, Meta(ge=1, le=315_360_000)] = 3600
    result_max_bytes: Annotated[int, Meta(ge=0, le=64 * 1024 * 1024)] = 8192
    idem_ttl_s: Annotated[int, Meta(ge=1, le=315_360_000)] = 86_400
    dlq_enabled: bool = True
    dlq_maxlen: Annotated[int, Meta(ge=1, le=10_000_000)] = DEAD_LETTER_LIMIT
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = "INFO"
    log_json: bool = False
    redis_server_bin: str = ""

    @property
    def modules(self) -> tuple[str, ...]:
        """The names of the task modules, in the order given, each once."""
        return tuple(dict.fromkeys(filter(None, (name.strip() for name in self.task_modules.split(",")))))

    @property
    def is_local(self) -> bool:
        """Whether only this machine itself can reach the API."""
        return is_loopback(self.api_host)

    @property
    def origins(self) -> frozenset[str]:
        """The origins whose pages may ask the API, beside its own; `*` stands for all that only watch events."""
        return frozenset(filter(None, (origin.strip().lower() for origin in self.ws_allowed_origins.split(","))))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={shown_value(name, str(getattr(self, name)))}" for name in self.__struct_fields__)
        return f"Settings({shown})"


class Loaded(Struct, frozen=True, kw_only=True):
    """Settings, and what an operator should know about where they came from."""

    settings: Settings
    given: frozenset[str] = frozenset()
    """The DTQ_ names that were not left to their defaults."""
    left: frozenset[str] = frozenset()
    """Those of them that only the folder of a `dtq dev` gives."""
    warnings: tuple[str, ...] = ()


class SettingsError(Exception):
    """One or more settings are wrong; ``faults`` lists all of them, without secrets."""

    def __init__(self, faults: Collection[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = tuple(faults)


def load(
    *,
    options: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Mapping[str, str] | None = None,
) -> Loaded:
    """Read and check every setting. Raises SettingsError with all faults.

    *options* come from the command line and win over *environment* (by default that of the process), which wins over
    *folder*, what `dtq dev` left in the current one. An empty text means the default. Keys are DTQ_ names.
    """
    environment = os.environ if environment is None else environment
    left, said = _known(folder or {}), {**_known(environment), **_known(options or {})}
    given = left | said
    faults: list[str] = []
    values: dict[str, object] = {}
    for field in fields(Settings):
        name = variable(field.name)
        if name not in given:
            continue
        try:
            values[field.name] = _converted(field, given[name])
        except ValueError as problem:
            faults.append(f"{name}={shown_value(field.name, given[name])}: {problem}")
    settings = Settings(**values)  # type: ignore[arg-type]  # each value was converted to its field's type
    faults.extend(_faults_between(settings))
    if faults:
        raise SettingsError(faults)
    warnings = tuple(_unknown_names(environment))
    return Loaded(
        settings=settings, given=frozenset(given), left=frozenset(left.keys() - said.keys()), warnings=warnings
    )


def variable(field: str) -> str:
    """Return the name of the environment variable of a field of Settings."""
    return PREFIX + field.upper()


def is_loopback(host: str) -> bool:
    """Tell whether a name or an address stands for the machine that uses it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def child_environment(changes: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment with *changes*, for a child process."""
    return {**os.environ, **changes}


def export_for_handlers(settings: Settings) -> None:
    """Let task handlers find the broker's Redis where they look for it, wherever this process found it."""
    os.environ[variable("redis_url")] = settings.redis_url


def shown_value(field: str, text: str) -> str:
    """Return how the value of a field may be shown to people."""
    if field == "api_key":
        return "***" if text else "''"
    return repr(redacted(text) if field == "redis_url" else text[:200])


def _known(source: Mapping[str, str]) -> dict[str, str]:
    names = {variable(name) for name in Settings.__struct_fields__}
    return {name: text for name, text in source.items() if name in names and text}


def _unknown_names(environment: Mapping[str, str]) -> Iterator[str]:
    names = {variable(name) for name in Settings.__struct_fields__}
    for name in sorted(environment):
        if name.startswith(PREFIX) and not name.startswith(TEST_PREFIX) and name not in names:
            yield f"{name[:100]} is no setting of dtq and is ignored"


def _converted(field: FieldInfo, text: str) -> object:
    """Turn *text* into the field's type. Raises ValueError whose message says what is allowed."""
    if field.name in _TEXTS:
        problem = _TEXTS[field.name](text)
        if problem is not None:
            raise ValueError(problem)
        return text
    if field.type is bool:
        return _boolean(text)
    try:
        return msgspec.convert(text.upper() if field.name == "log_level" else text, field.type, strict=False)
    except msgspec.ValidationError as error:
        raise ValueError(f"must be {allowed(field)}") from error


def allowed(field: FieldInfo) -> str:
    """Say in words what values a field of Settings may have."""
    match msgspec.inspect.type_info(field.type):
        case msgspec.inspect.IntType(ge=low, le=high):
            return f"an integer within {low}..{high}"
        case msgspec.inspect.FloatType(ge=low, le=high):
            return f"a number within {low:g}..{high:g}"
        case msgspec.inspect.BoolType():
            return "true, false, 1, 0, yes or no"
        case msgspec.inspect.LiteralType(values=values):
            return f"one of {', '.join(map(str, values))}"
        case _:
            return "a text"


def _boolean(text: str) -> bool:
    word = text.lower()
    if word in {"true", "1", "yes"}:
        return True
    if word in {"false", "0", "no"}:
        return False
    raise ValueError("must be true, false, 1, 0, yes or no")


def _faults_between(settings: Settings) -> Iterator[str]:
    """Name the faults that no value has by itself."""
    bounds = (
        ("twice DTQ_HEARTBEAT_INTERVAL_S", 2 * settings.heartbeat_interval_s, "visibility_timeout_s"),
        ("DTQ_RETRY_BASE_DELAY", settings.retry_base_delay, "retry_max_delay"),
        ("DTQ_IDEM_TTL_S", settings.idem_ttl_s, "task_retention_s"),
        ("DTQ_RESULT_RETENTION_S", settings.result_retention_s, "task_retention_s"),
    )
    for low_name, low, high_field in bounds:
        high = getattr(settings, high_field)
        if low > high:
            yield f"{variable(high_field)}={high:g}: must be at least {low_name} ({low:g})"


def _matches(pattern: re.Pattern[str], words: str) -> Callable[[str], str | None]:
    return lambda text: None if pattern.fullmatch(text) else f"must be {words} ({pattern.pattern})"


def _modules_problem(text: str) -> str | None:
    for name in text.split(","):
        if name.strip() and not all(part.isidentifier() for part in name.strip().split(".")):
            return f"must be names of Python modules, separated by commas; {name.strip()[:100]!r} is none"
    return None


def _origins_problem(text: str) -> str | None:
    for origin in filter(None, map(str.strip, text.split(","))):
        if origin != "*" and not ORIGIN_PATTERN.fullmatch(origin):
            allowed_origins = "must be origins such as https://example.org, separated by commas, or *"
            return f"{allowed_origins}; {origin[:100]!r} is none"
    return None


def _any_printable(text: str) -> str | None:
    return None if text.isprintable() and text == text.strip() else "must be printable text without space around it"


def _listening_problem(text: str) -> str | None:
    return None if is_host(text) else "must be a name or an address, such as localhost, 127.0.0.1 or ::"


_TEXTS: Final[Mapping[str, Callable[[str], str | None]]] = {
    "redis_url": url_problem,
    "key_prefix": _matches(KEY_PREFIX_PATTERN, "1 to 64 letters, digits, '_', '.', ':' or '-', with at most one {tag}"),
    "api_host": _listening_problem,
    "api_key": _any_printable,
    "ws_path": _matches(WS_PATH_PATTERN, "a path"),
    "ws_allowed_origins": _origins_problem,
    "worker_id": _matches(WORKER_ID_PATTERN, "1 to 64 letters, digits, '_' or '-'"),
    "worker_queue": _matches(QUEUE_PATTERN, "the name of a queue"),
    "task_modules": _modules_problem,
    "redis_server_bin": _any_printable,
}
