"""What the API reads and answers, beside the views of a task."""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Raw, Struct

from dtq.domain.admission import FIELDS, KEY_PATTERN
from dtq.domain.errors import FieldProblem, InvalidTask
from dtq.domain.json_text import MAX_DEPTH, malformed
from dtq.domain.status import TaskStatus

AS_TEXT: Final = frozenset({"payload", "metadata"})
"""The fields that are stored as the text that was received."""

_OPENINGS: Final = (b"[", b"{")
_NO_VALUE: Final = b""
"""Stands for a value that cannot be read; no field accepts it."""


class Accepted(Struct, frozen=True, kw_only=True):
    """A task that was accepted, or cancelled."""

    task_id: str
    status: TaskStatus


class GoneDuplicate(Struct, frozen=True, kw_only=True):
    """The key of a submission belongs to a task that has ended and is not stored any more."""

    task_id: str
    status: None
    duplicate: bool


class Health(Struct, frozen=True, kw_only=True):
    """The process is alive."""

    status: str = "ok"


class Readiness(Struct, frozen=True, kw_only=True):
    """Whether requests can be served now, and what stands in the way."""

    status: str
    broker: str
    problems: list[str]
    warnings: list[str]


_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_value_of: Final = msgspec.json.Decoder().decode


def task_fields(body: bytes) -> dict[str, object]:
    """Read the members of a submission, payload and metadata as their text, of duplicates the last.

    Raises InvalidTask where the body is no JSON object; a member that cannot be read is left for admission to refuse.
    """
    try:
        members = _members(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        why = malformed(error, body.decode(errors="replace"))
        raise InvalidTask((FieldProblem("body", f"must be a JSON object: {why}"),)) from error
    except RecursionError as error:
        raise InvalidTask((FieldProblem("body", f"nested deeper than {MAX_DEPTH} levels"),)) from error
    return {name: _value(name, bytes(value)) for name, value in members.items()}


def _value(name: str, text: bytes) -> object:
    if name not in FIELDS or text == b"null":
        return None
    try:
        if name in AS_TEXT:
            return text.decode()
        # no other field is an array or an object, so its depth need not be followed
        return _NO_VALUE if text.startswith(_OPENINGS) else _value_of(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _NO_VALUE


def with_header(fields: Mapping[str, object], *, idempotency_key: str | None) -> Mapping[str, object]:
    """Let the Idempotency-Key header win over the body's member (contract section 5), unless that is left to refuse."""
    if idempotency_key is None:
        return fields
    in_body = fields.get("idempotency_key")
    is_wrong = in_body is not None and not (isinstance(in_body, str) and KEY_PATTERN.fullmatch(in_body))
    return fields if is_wrong else {**fields, "idempotency_key": idempotency_key}
