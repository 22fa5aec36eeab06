"""What becomes of a line on its way out: fields for everybody, nothing that can forge one, no text of an error."""

import math
import re
import sys
import traceback
from collections.abc import MutableMapping
from typing import Any, Final

import msgspec
import structlog
from structlog.typing import Processor

from dtq.domain.text import clean

FIELDS: Final = (
    "timestamp",
    "level",
    "service",
    "worker_id",
    "task_id",
    "task_type",
    "queue",
    "attempt",
    "status",
    "duration_ms",
    "event_type",
)
"""What every JSON line has; null where it does not apply."""

_LINE_LIMIT: Final = 2000
_NAME_LIMIT: Final = 100
_NO_WORD: Final = re.compile(r"[^A-Za-z0-9_.-]")
_FRAMES: Final = 8

Line = MutableMapping[str, Any]


def processors(*, service: str, worker_id: str | None, as_json: bool, colors: bool) -> list[Processor]:
    """Return what makes one line of text out of what was said."""
    return [
        # what goes on around the line: the request, or the task whose handler writes it
        structlog.contextvars.merge_contextvars,
        _from(service=service, worker_id=worker_id),
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="timestamp"),
        _without_traceback,
        _sanitized,
        *([_json_line] if as_json else [_marked, _readable(colors=colors)]),
    ]


def trace_of(error: BaseException) -> str:
    """Name the lines that led to an error, the last ones first, without what they worked on."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    return " < ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(frames))


def _from(*, service: str, worker_id: str | None) -> Processor:
    def add(_: object, __: str, line: Line) -> Line:
        line["service"] = service
        if worker_id is not None:
            line.setdefault("worker_id", worker_id)
        return line

    return add


def _without_traceback(_: object, __: str, line: Line) -> Line:
    """Name an error that comes with a line, without its message and traceback."""
    given = line.pop("exc_info", None)
    error = sys.exc_info()[1] if given is True else given[1] if isinstance(given, tuple) else given
    if isinstance(error, BaseException):
        line["error_class"] = type(error).__name__
        line["trace"] = trace_of(error)
    return line


def _sanitized(_: object, __: str, line: Line) -> Line:
    """Make every name a word, and every value safe for one line of text."""
    return {_NO_WORD.sub("_", str(name)[:_NAME_LIMIT]): _safe(value) for name, value in line.items()}


def _safe(value: object) -> object:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return clean(str(value), limit=_LINE_LIMIT)


def _marked(_: object, __: str, line: Line) -> Line:
    """Quote what a line is about where it could pass for fields; the renderer does so with values.

    It would give a line of its own to values of two names, which therefore get others.
    """
    event = str(line.get("event", ""))
    line["event"] = repr(event) if "=" in event else event
    for name in {"exception", "stack"}.intersection(line):
        line[f"{name}_text"] = line.pop(name)
    return line


def _json_line(_: object, __: str, line: Line) -> str:
    fields = {name: line.get(name) for name in FIELDS}
    return msgspec.json.encode({**fields, **line}).decode()


def _readable(*, colors: bool) -> structlog.dev.ConsoleRenderer:
    # the default formatter of exceptions shows local variables, which may be payloads
    plain = structlog.dev.plain_traceback
    return structlog.dev.ConsoleRenderer(colors=colors, pad_event_to=0, pad_level=False, exception_formatter=plain)
