"""What may be submitted: every field's bounds, checked all at once (contract section 1)."""

import math
import re
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from decimal import Decimal
from itertools import islice
from typing import Final

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

FIELDS: Final = (
    "task_type",
    "payload",
    "queue",
    "idempotency_key",
    "max_attempts",
    "priority",
    "timeout_ms",
    "delay_seconds",
    "metadata",
)
"""What a submission may name, in the contract's order."""

_KNOWN: Final = frozenset(FIELDS)


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
    """A submission that has been admitted. ``payload`` and ``metadata`` are JSON text as received."""

    task_type: str
    payload: str
    queue: QueueName
    idempotency_key: str | None
    max_attempts: int
    priority: int
    timeout: timedelta
    delay: timedelta
    metadata: str
    ttl: timedelta | None


def admit(fields: Mapping[str, object], *, rules: AdmissionRules) -> TaskSpec:
    """Check a submission's fields and fill in the defaults.

    *fields* maps names to plain values; ``payload`` and ``metadata`` are JSON text. A missing field and None both mean
    the default. Raises PayloadTooLarge, InvalidTask with every problem found, or UnknownTaskType, in this order, and
    InvalidTask where only the handler's own type of the payload is not met.
    """
    _check_payload_size(fields.get("payload"), limit=rules.max_payload_bytes)
    check = _Check(fields)
    check.unknown_names()
    metadata, ttl = check.metadata()
    spec = TaskSpec(
        task_type=check.text("task_type", TASK_TYPE_PATTERN),
        payload=check.json_object("payload", default=None)[0],
        queue=QueueName(check.text("queue", QUEUE_PATTERN, default=DEFAULT_QUEUE)),
        idempotency_key=check.optional_text("idempotency_key", KEY_PATTERN),
        max_attempts=check.integer(
            "max_attempts", 1, rules.max_attempts, default=min(DEFAULT_MAX_ATTEMPTS, rules.max_attempts)
        ),
        priority=check.integer("priority", 0, MAX_PRIORITY, default=DEFAULT_PRIORITY),
        timeout=timedelta(
            milliseconds=check.integer("timeout_ms", 1, MAX_TIMEOUT_MS, default=rules.default_timeout_ms)
        ),
        delay=_seconds(check.number("delay_seconds", 0, MAX_DELAY_S, default=0)),
        metadata=metadata,
        ttl=ttl,
    )
    if check.problems:
        raise InvalidTask(tuple(check.problems))
    if spec.task_type not in rules.task_types:
        raise UnknownTaskType(spec.task_type)
    problem = rules.payload_problem(spec.task_type, spec.payload)
    if problem is not None:
        raise InvalidTask((problem,))
    return spec


def _check_payload_size(payload: object, *, limit: int) -> None:
    if isinstance(payload, str):
        size = _size(payload)
        if size > limit:
            raise PayloadTooLarge(size=size, limit=limit)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _seconds(value: float) -> timedelta:
    """Return *value* in whole milliseconds, rounded up; as decimals, for 1.1 s are to be 1100 ms and not 1101."""
    return timedelta(milliseconds=math.ceil(Decimal(str(value)) * 1000)) if value else timedelta()


class _Check:
    """Reads fields one by one and remembers every problem; what it returns for a bad field is never used."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        self._fields = fields
        self.problems: list[FieldProblem] = []

    def _blame(self, field: str, problem: str) -> None:
        self.problems.append(FieldProblem(field, problem))

    def unknown_names(self) -> None:
        if _KNOWN.issuperset(self._fields):
            return
        unknown = (name for name in self._fields if name not in _KNOWN)
        for name in islice(unknown, MAX_UNKNOWN_NAMES):
            self._blame(clean(name, limit=100), f"unknown field; known are {', '.join(FIELDS)}")

    def text(self, name: str, pattern: re.Pattern[str], *, default: str | None = None) -> str:
        value = self._fields.get(name)
        if value is None:
            if default is None:
                self._blame(name, "required")
            return default or ""
        if not isinstance(value, str) or not pattern.fullmatch(value):
            self._blame(name, f"must be text of the form {pattern.pattern}")
            return ""
        return value

    def optional_text(self, name: str, pattern: re.Pattern[str]) -> str | None:
        return None if self._fields.get(name) is None else self.text(name, pattern)

    def integer(self, name: str, low: int, high: int, *, default: int) -> int:
        value = self._fields.get(name)
        if value is None:
            return default
        if isinstance(value, float) and value.is_integer():
            # JSON has one kind of number: to JSON Schema, which the API is described in, 5.0 is an integer
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self._blame(name, f"must be an integer within {low}..{high}")
            return default
        return value

    def number(self, name: str, low: float, high: float, *, default: float) -> float:
        value = self._fields.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            self._blame(name, f"must be a finite number within {low}..{high}")
            return default
        return value

    def json_object(self, name: str, *, default: str | None) -> tuple[str, Mapping[str, object]]:
        """Return the text of a JSON object as received, and what is in it; a default is an empty one."""
        value = self._fields.get(name)
        if value is None:
            if default is None:
                self._blame(name, "required")
            return default or "{}", {}
        if not isinstance(value, str):
            self._blame(name, "must be a JSON object")
            return "{}", {}
        try:
            return value, parse_object(value)
        except JsonProblem as problem:
            self._blame(name, str(problem))
            return "{}", {}

    def metadata(self) -> tuple[str, timedelta | None]:
        """Return the text as received and the time to live in it; a text that is too large is not looked into."""
        value = self._fields.get("metadata")
        size = _size(value) if isinstance(value, str) else 0
        if size > MAX_METADATA_BYTES:
            self._blame("metadata", f"{size} bytes, at most {MAX_METADATA_BYTES} are allowed")
            return "{}", None
        text, values = self.json_object("metadata", default="{}")
        for name in RESERVED_METADATA:
            if name in values:
                self._blame(f"metadata.{name}", "reserved: dtq writes it")
        return text, self._time_to_live(values) if "ttl_seconds" in values else None

    def _time_to_live(self, values: Mapping[str, object]) -> timedelta | None:
        ttl = values["ttl_seconds"]
        if isinstance(ttl, bool) or not isinstance(ttl, (int, float)) or not 0 < ttl <= MAX_TTL_S:
            self._blame("metadata.ttl_seconds", f"must be a finite number above 0, at most {MAX_TTL_S}")
            return None
        return _seconds(ttl)
