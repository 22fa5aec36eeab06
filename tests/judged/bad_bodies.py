"""Requests that must be refused: each with the status, the code, and what the refusal must name."""

import json
from dataclasses import dataclass, field
from typing import Any

import msgspec

JSON = {"Content-Type": "application/json"}
LIMIT_BYTES = 262_144


@dataclass(frozen=True, slots=True, kw_only=True)
class Bad:
    """One bad request to POST /api/v1/tasks; *names* is a field that its refusal blames."""

    body: bytes
    names: str | None
    status: int = 400
    code: str = "INVALID_TASK"
    headers: dict[str, str] = field(default_factory=lambda: JSON)


def raw(body: str | bytes, *, names: str | None = "body", **rest: Any) -> Bad:
    """A body as it is."""
    return Bad(body=body if isinstance(body, bytes) else body.encode(), names=names, **rest)


def with_member(name: str, text: str | None, *, names: str | None = None, **rest: Any) -> Bad:
    """A good submission but for one member, whose JSON text is given; None leaves it out."""
    members = {"task_type": '"echo"', "payload": "{}", name: text}
    body = ", ".join(f'"{one}": {value}' for one, value in members.items() if value is not None)
    return raw("{" + body + "}", names=names or name, **rest)


def nested(depth: int) -> str:
    """A JSON object of so many levels."""
    return '{"a":' * (depth - 1) + "{}" + "}" * (depth - 1)


def text_of(size: int) -> str:
    """A JSON object of exactly so many bytes."""
    return json.dumps({"a": "x" * (size - len('{"a": ""}'))})


GOOD = '{"task_type": "echo", "payload": {}}'


def of_type(content_type: str | None) -> Bad:
    """A good body under a wrong content type."""
    headers = {} if content_type is None else {"Content-Type": content_type}
    return raw(GOOD, names="Content-Type", code="INVALID_REQUEST", headers=headers)


BODIES = {
    "truncated": raw(GOOD[:-4]),
    "trailing comma": raw('{"task_type": "echo", "payload": {},}'),
    "two documents": raw(GOOD + GOOD),
    "no JSON": raw("task_type=echo"),
    "empty": raw(""),
    "null": raw("null"),
    "array": raw("[1]"),
    "text": raw('"echo"'),
    "invalid UTF-8": raw(GOOD.encode().replace(b"echo", b"\xff\xfe"), names="task_type"),
    "byte order mark": raw(b"\xef\xbb\xbf" + GOOD.encode()),
    "deep array": raw("[" * 100_000),
    "unknown field": with_member("surprise", "1"),
    "text type": of_type("text/plain"),
    "form type": of_type("application/x-www-form-urlencoded"),
    "no type": of_type(None),
    "wrong charset": of_type("application/json; charset=latin-1"),
    "body too large": raw(" " * (LIMIT_BYTES + 100_000), names=None, status=413, code="PAYLOAD_TOO_LARGE"),
    "bad key header": raw(GOOD, names="idempotency_key", headers={**JSON, "Idempotency-Key": "with space"}),
    "empty key header": raw(GOOD, names="idempotency_key", headers={**JSON, "Idempotency-Key": ""}),
}

BAD_VALUES = (
    '{"a": NaN}',
    '{"a": Infinity}',
    '{"a": -Infinity}',
    '{"a": 1e400}',
    '{"a": "\\ud800"}',
    '{"\\udfff": 1}',
    '{"a": 01}',
    '{"a": [1}',
)
NUMBERS_ONLY = ('"5"', "5.5", "true", "[5]", "{}", "NaN", "1e400", "9" * 5000)

MEMBERS: dict[str, tuple[str | None, ...]] = {
    "task_type": (None, "null", '""', "5", '["echo"]', '"echo\\n"', '"e c h o"', f'"{"x" * 129}"', '"\\ud800"'),
    "payload": (None, "null", "[]", '"{}"', "5", "true", "NaN", *BAD_VALUES, nested(65), nested(20_000)),
    "queue": ('""', '"UPPER"', '"a:b"', '"a*"', f'"{"q" * 65}"', '"default\\n"', '"-a"', "5", "[]"),
    "idempotency_key": ('""', '"a b"', '"a\\nb"', f'"{"k" * 201}"', '"\\u00e4"', "5", "{}"),
    "max_attempts": ("0", "11", "-1", *NUMBERS_ONLY),
    "priority": ("-1", "10", *NUMBERS_ONLY),
    "timeout_ms": ("0", "3600001", "-1", *NUMBERS_ONLY),
    "delay_seconds": ("-1", "-0.001", "2592001", '"1"', "true", "[]", "NaN", "Infinity", "1e400", "9" * 5000),
    "metadata": ("[]", '"{}"', "5", '{"a": NaN}', '{"a": "\\ud800"}', nested(65), text_of(4097)),
    "metadata.ttl_seconds": ("0", "-1", '"1"', "true", "1e300", "NaN", "[]"),
    "metadata.discarded": ("true",),
    "metadata.previous_attempts": ("[]",),
}


def is_json(text: str | None) -> bool:
    """Whether a member's text is JSON, so that it can be told from its neighbors and blamed by name."""
    try:
        msgspec.json.decode(text or "0", type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def bad_requests() -> dict[str, Bad]:
    """Every bad request by a name that tells it."""
    found = dict(BODIES)
    for name, texts in MEMBERS.items():
        for text in texts:
            outer, _, inner = name.partition(".")
            value = f'{{"{inner}": {text}}}' if inner else text
            found[f"{name} {str(text)[:40]}"] = with_member(outer, value, names=name if is_json(value) else "body")
    found["unknown type"] = with_member("task_type", '"nobody"', code="UNKNOWN_TASK_TYPE")
    found["payload too large"] = with_member("payload", text_of(LIMIT_BYTES + 1), status=413, code="PAYLOAD_TOO_LARGE")
    return found
