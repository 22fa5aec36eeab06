"""LogObserver: one line for each thing that happens, without payloads, secrets or control characters."""

import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final, TextIO

import structlog

from dtq.adapters.logs.brief import SAID, brief
from dtq.adapters.logs.calls import bound_logger
from dtq.adapters.logs.lines import Lines
from dtq.adapters.logs.processors import of_error, processors
from dtq.domain.change import Change
from dtq.domain.events import Event, EventType

_ROUTINE: Final = frozenset({"audit", "draining", "drained", "queue_retired"})
"""What is noticed in the ordinary course of things."""

_QUIET: Final = frozenset({"submission_rejected", "client_gone"})
"""What strangers could fill the log with."""

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
        self._processors = processors(service=service, worker_id=worker_id, as_json=as_json, colors=colors)
        self._lowest = logging.getLevelNamesMapping()[level]
        # colors are for a person who looks on, and for whom the processors are fast enough
        is_brief = self._lowest <= logging.INFO and (as_json or not colors)
        self._brief = (
            brief(service=service, worker_id=worker_id, as_json=as_json, warned_of=_WORRYING) if is_brief else _none
        )
        self._kind = bound_logger(level)
        self._writer = Lines(stream, on_left_out=self._left_out)
        self._log = structlog.wrap_logger(
            self._writer,
            processors=self._processors,
            wrapper_class=self._kind,
            context_class=dict,
            cache_logger_on_first_use=True,
        )

    def committed(self, *changes: Change) -> None:
        lines = self._brief(changes)
        made = [line for line in lines if line is not None]
        if len(made) == len(lines):
            self._writer.info(*made)
            return
        for change, line in zip(changes, lines, strict=True):
            if line is None:
                self._at_length(change)
            else:
                self._writer.info(line)

    def _at_length(self, change: Change) -> None:
        task, event = change.after, change.event
        kind = None if event is None else event.type
        level = logging.WARNING if kind in _WORRYING else logging.INFO
        if level < self._lowest:
            return
        worker = None if event is None else event.worker_id
        self._log.log(
            level,
            SAID,
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
        level = "DEBUG" if what in _QUIET else "INFO" if what in _ROUTINE else "WARNING"
        self.log(level, what, **details)

    def log(self, level: str, what: str, **details: Detail) -> None:
        """Write a line of *level*, a name that the logging module knows."""
        self._log.log(logging.getLevelNamesMapping()[level], what, **details)

    def _left_out(self, count: int) -> None:
        self.log("WARNING", "log_lines_left_out", count=count)

    def crashed(self, what: str, error: BaseException) -> None:
        """Write down where an error that nobody expected was raised, and not its message, which may show a payload."""
        self.log("ERROR", what, **of_error(error))

    def share(self) -> None:
        """Give every logger of structlog the form of these lines."""
        structlog.configure(
            processors=self._processors,
            wrapper_class=self._kind,
            context_class=dict,
            logger_factory=lambda *_: self._writer,
            cache_logger_on_first_use=True,
        )


def _none(changes: Sequence[Change]) -> Sequence[str | None]:
    """Leave every line to the processors."""
    return [None] * len(changes)


def _of_audit(change: Change) -> Mapping[str, Detail]:
    if change.audit is None:
        return {}
    return {"action": change.audit.action, "actor": change.audit.actor, "request_id": change.audit.request_id}


def _present(**details: Detail) -> dict[str, Detail]:
    return {name: value for name, value in details.items() if value is not None}
