"""LogObserver: one line for each thing that happens, without payloads, secrets or control characters."""

import logging
import math
from collections.abc import Mapping, MutableMapping
from datetime import timedelta
from typing import Any, Final, TextIO

import msgspec
import structlog

from dtq.domain.change import Change
from dtq.domain.events import Event, EventType
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
_ROUTINE: Final = frozenset({"audit", "draining", "drained", "queue_retired"})
"""What is noticed in the ordinary course of things."""

_WORRYING: Final = frozenset({EventType.TASK_FAILED, EventType.TASK_DEAD_LETTERED, EventType.WORKER_STALE})

Detail = str | float | bool | None


class LogObserver:
    """Writes what it observes to *stream*, in JSON or for people to read. Never raises, whatever the stream does."""

    def __init__(
        self,
        stream: TextIO,
        *,
        service: str,
        level: str,
        as_json: bool,
        colors: bool = False,
        worker_id: str | None = None,
    ) -> None:
        processors: list[structlog.typing.Processor] = [
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="timestamp"),
            _sanitized,
            _json_line if as_json else _readable(colors=colors),
        ]
        self._log = structlog.wrap_logger(
            structlog.WriteLogger(_Unfailing(stream)),  # type: ignore[arg-type]  # it only writes and flushes
            processors=processors,
            wrapper_class=structlog.make_filtering_bound_logger(level),
            context_class=dict,
            cache_logger_on_first_use=True,
            service=service,
            **({} if worker_id is None else {"worker_id": worker_id}),
        )

    def committed(self, change: Change) -> None:
        task, event = change.after, change.event
        kind = None if event is None else event.type
        worker = None if event is None else event.worker_id
        self._log.log(
            logging.WARNING if kind in _WORRYING else logging.INFO,
            "task changed",
            event_type=kind,
            task_id=task.task_id,
            task_type=task.task_type,
            queue=task.queue,
            attempt=task.attempt,
            status=task.status,
            **_present(
                duration_ms=None if task.duration is None else task.duration // timedelta(milliseconds=1),
                error_class=None if task.failure is None else task.failure.error_class,
                worker_id=worker,
                **_of_audit(change),
            ),
        )

    def happened(self, event: Event) -> None:
        self._log.log(
            logging.WARNING if event.type in _WORRYING else logging.INFO,
            "event",
            event_type=event.type,
            **{
                **(event.metadata or {}),
                **_present(
                    task_id=event.task_id,
                    task_type=event.task_type,
                    queue=event.queue,
                    attempt=event.attempt,
                    worker_id=event.worker_id,
                ),
            },
        )

    def noticed(self, what: str, **details: Detail) -> None:
        self.log("INFO" if what in _ROUTINE else "WARNING", what, **details)

    def log(self, level: str, what: str, **details: Detail) -> None:
        """Write a line of *level*, a name that the logging module knows."""
        self._log.log(logging.getLevelNamesMapping()[level], what, **details)


class LogHandler(logging.Handler):
    """Brings what libraries log through the logging module into the same stream, as lines of the same form."""

    def __init__(self, observer: LogObserver) -> None:
        super().__init__()
        self._observer = observer

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        named = {} if error is None else {"error_class": type(error).__name__}
        level = record.levelname if record.levelname in logging.getLevelNamesMapping() else "INFO"
        self._observer.log(level, record.getMessage(), logger=record.name, **named)


class _Unfailing:
    """A stream whose reader may be gone: a log line that nobody can read is no reason to stop work."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        try:
            self._stream.write(text)
        except (OSError, ValueError):
            return

    def flush(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError):
            return


def _of_audit(change: Change) -> Mapping[str, Detail]:
    if change.audit is None:
        return {}
    return {"action": change.audit.action, "actor": change.audit.actor, "request_id": change.audit.request_id}


def _present(**details: Detail) -> dict[str, Detail]:
    return {name: value for name, value in details.items() if value is not None}


def _sanitized(_: object, __: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Make every value safe for one line of text."""
    return {clean(str(name), limit=100): _safe(value) for name, value in line.items()}


def _safe(value: object) -> object:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return clean(str(value), limit=_LINE_LIMIT)


def _json_line(_: object, __: str, line: MutableMapping[str, Any]) -> str:
    fields = {name: line.get(name) for name in FIELDS}
    return msgspec.json.encode({**fields, **line}).decode()


def _readable(*, colors: bool) -> structlog.dev.ConsoleRenderer:
    # the default formatter of exceptions shows local variables, which may be payloads
    plain = structlog.dev.plain_traceback
    return structlog.dev.ConsoleRenderer(colors=colors, pad_event_to=0, pad_level=False, exception_formatter=plain)
