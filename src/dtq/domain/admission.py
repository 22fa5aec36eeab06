"""What may be submitted: every field's bounds, checked all at once (contract section 1)."""

import math
import re
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from decimal import Decimal
from itertools import islice
from typing import Any, Final

from msgspec import Struct

from dtq.domain.errors import FieldProblem, InvalidTask, PayloadTooLarge, UnknownTaskType
from dtq.domain.json_text import JsonProblem, parse_object
from dtq.domain.task import QueueName
from dtq.domain.text import clean

QUEUE_PATTERN: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
TASK_TYPE_PATTERN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
KEY_PATTERN: Final = re.compile(r"[!-~]{1,200}")
TASK_ID_PATTERN: Final = re.compile(r"[0-9a-f]{32}")

MAX_METADATA_BYTES: Final = 4096
MAX_TIMEOUT_MS: Final = 3_600_000
MAX_DELAY_S: Final = 2_592_000
MAX_PRIORITY: Final = 9
DEFAULT_PRIORITY: Final = 5
DEFAULT_MAX_ATTEMPTS: Final = 5
DEFAULT_QUEUE: Final = QueueName("default")
MAX_TTL_S: Final = 3_153_600_000
RESERVED_METADATA: Final = ("previous_attempts", "previous_attempts_dropped", "discarded")
MAX_UNKNOWN_NAMES: Final = 20
"""How many unknown fields are named in a refusal, so that its size does not follow that of the request."""


def _any_object(_task_type: str, _payload: str) -> FieldProblem | None:
    return None


class AdmissionRules(Struct, frozen=True, kw_only=True):
    """The bounds that operators set, and the task types that are known here.

    ``payload_problem`` tells what keeps a text, a JSON object, from being a payload of a task type.
    """

    task_types: Collection[str]
    payload_problem: Callable[[str, str], FieldProblem | None] = _any_object
    max_payload_bytes: int = 262_144
    max_attempts: int = 10
    default_timeout_ms: int = 30_000


class BrokerLimits(Struct, frozen=True, kw_only=True):
    """How much waiting work a broker admits; checked by it in the same step as the admission."""

    queue_depth: int = 10_000
    scheduled: int = 100_000
    queues: int = 1_000


class TaskSpec(Struct, frozen=True, kw_only=True):
    """A submission that has been admitted. ``payload`` and ``metadata`` are JSON text as received.

    What a submission may leave out has its default here, but for what operators set.
    """

    task_type: str
    payload: str
    max_attempts: int
    timeout: timedelta
    queue: QueueName = DEFAULT_QUEUE
    idempotency_key: str | None = None
    priority: int = DEFAULT_PRIORITY
    delay: timedelta = timedelta()
    metadata: str = "{}"
    ttl: timedelta | None = None


def admit(fields: Mapping[str, object], *, rules: AdmissionRules) -> TaskSpec:
    """Check a submission's fields and fill in the defaults.

    *fields* maps names to plain values; ``payload`` and ``metadata`` are JSON text. A missing field and None both mean
    the default. Raises PayloadTooLarge, InvalidTask with every problem found, or UnknownTaskType, in this order, and
    InvalidTask where only the handler's own type of the payload is not met.
    """
    size = _size(fields.get("payload"))
    if size > rules.max_payload_bytes:
        raise PayloadTooLarge(size=size, limit=rules.max_payload_bytes)
    check = _Check(rules)
    if not _KNOWN.issuperset(fields):
        check.unknown_names(fields)
    for name, value in fields.items():
        if value is not None and name in _READERS:
            _READERS[name](check, value)
    for name in _REQUIRED:
        if fields.get(name) is None:
            check.blame(name, "required")
    if check.problems:
        raise InvalidTask(tuple(check.problems))
    spec = TaskSpec(**check.found)
    if spec.task_type not in rules.task_types:
        raise UnknownTaskType(spec.task_type)
    problem = rules.payload_problem(spec.task_type, spec.payload)
    if problem is not None:
        raise InvalidTask((problem,))
    return spec


def _size(text: object) -> int:
    if not isinstance(text, str):
        return 0
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _seconds(value: float) -> timedelta:
    """Return *value* in whole milliseconds, rounded up; as decimals, for 1.1 s are to be 1100 ms and not 1101."""
    return timedelta(milliseconds=math.ceil(Decimal(str(value)) * 1000)) if value else timedelta()


class _Check:
    """Reads the fields that are given, each by its reader, and remembers every problem.

    ``found`` are members of a TaskSpec; what it has of a bad field is never used.
    """

    def __init__(self, rules: AdmissionRules) -> None:
        self._max_attempts = rules.max_attempts
        self.problems: list[FieldProblem] = []
        self.found: dict[str, Any] = {
            "max_attempts": min(DEFAULT_MAX_ATTEMPTS, rules.max_attempts),
            "timeout": timedelta(milliseconds=rules.default_timeout_ms),
        }

    def blame(self, field: str, problem: str) -> None:
        self.problems.append(FieldProblem(field, problem))

    def unknown_names(self, fields: Mapping[str, object]) -> None:
        unknown = (name for name in fields if name not in _KNOWN)
        for name in islice(unknown, MAX_UNKNOWN_NAMES):
            self.blame(clean(name, limit=100), f"unknown field; known are {', '.join(FIELDS)}")

    def task_type(self, value: object) -> None:
        self._text("task_type", value, TASK_TYPE_PATTERN)

    def payload(self, value: object) -> None:
        self._json_object("payload", value)

    def queue(self, value: object) -> None:
        self._text("queue", value, QUEUE_PATTERN)

    def idempotency_key(self, value: object) -> None:
        self._text("idempotency_key", value, KEY_PATTERN)

    def max_attempts(self, value: object) -> None:
        self.found["max_attempts"] = self._integer("max_attempts", value, 1, self._max_attempts)

    def priority(self, value: object) -> None:
        self.found["priority"] = self._integer("priority", value, 0, MAX_PRIORITY)

    def timeout_ms(self, value: object) -> None:
        self.found["timeout"] = timedelta(milliseconds=self._integer("timeout_ms", value, 1, MAX_TIMEOUT_MS))

    def delay_seconds(self, value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= MAX_DELAY_S:
            self.blame("delay_seconds", f"must be a finite number within 0..{MAX_DELAY_S}")
        else:
            self.found["delay"] = _seconds(value)

    def metadata(self, value: object) -> None:
        """Read it with the time to live in it; a text that is too large is not looked into."""
        size = _size(value)
        if size > MAX_METADATA_BYTES:
            self.blame("metadata", f"{size} bytes, at most {MAX_METADATA_BYTES} are allowed")
            return
        values = self._json_object("metadata", value)
        for name in RESERVED_METADATA:
            if name in values:
                self.blame(f"metadata.{name}", "reserved: dtq writes it")
        if "ttl_seconds" in values:
            self._time_to_live(values["ttl_seconds"])

    def _text(self, name: str, value: object, pattern: re.Pattern[str]) -> None:
        if isinstance(value, str) and pattern.fullmatch(value):
            self.found[name] = value
        else:
            self.blame(name, f"must be text of the form {pattern.pattern}")

    def _integer(self, name: str, value: object, low: int, high: int) -> int:
        if isinstance(value, float) and value.is_integer():
            # JSON has one kind of number: to JSON Schema, which the API is described in, 5.0 is an integer
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.blame(name, f"must be an integer within {low}..{high}")
            return low
        return value

    def _json_object(self, name: str, value: object) -> Mapping[str, object]:
        """Take the text of a JSON object as received, and return what is in it."""
        if not isinstance(value, str):
            self.blame(name, "must be a JSON object")
            return {}
        self.found[name] = value
        try:
            return parse_object(value)
        except JsonProblem as problem:
            self.blame(name, str(problem))
            return {}

    def _time_to_live(self, ttl: object) -> None:
        if isinstance(ttl, bool) or not isinstance(ttl, (int, float)) or not 0 < ttl <= MAX_TTL_S:
            self.blame("metadata.ttl_seconds", f"must be a finite number above 0, at most {MAX_TTL_S}")
        else:
            self.found["ttl"] = _seconds(ttl)


_READERS: Final[Mapping[str, Callable[[_Check, object], None]]] = {
    "task_type": _Check.task_type,
    "payload": _Check.payload,
    "queue": _Check.queue,
    "idempotency_key": _Check.idempotency_key,
    "max_attempts": _Check.max_attempts,
    "priority": _Check.priority,
    "timeout_ms": _Check.timeout_ms,
    "delay_seconds": _Check.delay_seconds,
    "metadata": _Check.metadata,
}
"""What a submission may name, in the contract's order, each with what reads it."""

FIELDS: Final = tuple(_READERS)

_KNOWN: Final = frozenset(FIELDS)
_REQUIRED: Final = ("task_type", "payload")
