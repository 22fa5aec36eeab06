"""MetricsObserver: what happens, counted and measured by one table."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Final

from prometheus_client import Counter, Histogram

from dtq.adapters.prometheus.definitions import METRICS, OPERATIONS, REJECTED
from dtq.adapters.prometheus.labels import Labels
from dtq.domain.change import Change
from dtq.domain.events import Event, EventType

Amount = Callable[[Change], float | None]
"""How much a change adds to a metric; None where it is none of its business."""

Instrument = Counter | Histogram

PROOFS: Final = frozenset({"queue_full", "idempotency"})
"""The reasons of a refusal that only a registered queue can give."""


def _once(_: Change) -> float:
    return 1


def _completed(change: Change) -> float | None:
    is_new = change.before is None or not change.before.is_terminal
    return 1 if change.after.is_terminal and is_new else None


def _attempted(change: Change) -> float | None:
    return 1 if change.attempt_result else None


def _wait(change: Change) -> float | None:
    before, after = change.before, change.after
    if before is None or after.started_at is None:
        return None
    # a record that was rebuilt does not tell of earlier starts
    is_first = before.is_stored and before.started_at is None and before.requeued_at is None
    return _seconds(after.started_at - after.created_at) if is_first else None


def _duration(change: Change) -> float | None:
    task = change.after
    if task.finished_at is None:
        return None
    return _seconds(task.finished_at - max(task.created_at, task.requeued_at or task.created_at))


def _seconds(duration: timedelta | None) -> float | None:
    # the server's clock may have been set back meanwhile
    return None if duration is None else max(0.0, duration.total_seconds())


_OF_EACH: Final[Mapping[EventType, Mapping[str, Amount]]] = {
    EventType.TASK_STARTED: {"dtq_tasks_started_total": _once, "dtq_task_wait_seconds": _wait},
    EventType.TASK_SUCCEEDED: {"dtq_tasks_succeeded_total": _once, "dtq_task_duration_seconds": _duration},
    EventType.TASK_FAILED: {"dtq_tasks_failed_total": _once},
    EventType.TASK_RETRY_SCHEDULED: {
        "dtq_tasks_retried_total": _once,
        "dtq_retry_delay_seconds": lambda change: _seconds(change.after.retry_delay),
    },
    EventType.TASK_DEAD_LETTERED: {"dtq_tasks_dead_lettered_total": _once},
}
"""What a change adds to which metric where it has this event, whoever observes it."""

_OF_ALL: Final[Mapping[str, Amount]] = {
    "dtq_tasks_submitted_total": lambda change: 1 if change.starts_life else None,
    "dtq_tasks_completed_total": _completed,
    "dtq_task_attempts_total": _attempted,
    "dtq_task_execution_seconds": lambda change: _seconds(change.ran),
}
"""The same, whatever its event is."""

_LABELS: Final = {metric.name: metric.labels for metric in METRICS}


def _growth(instrument: Instrument, labels: Sequence[str]) -> Callable[[float], None]:
    """Return what adds to one series."""
    if isinstance(instrument, Histogram):
        return instrument.labels(*labels).observe
    return instrument.labels(*labels).inc


class MetricsObserver:
    """Counts what it is told of, in those of *instruments* that its process has."""

    def __init__(self, instruments: Mapping[str, Instrument], *, labels: Labels, worker_id: str | None) -> None:
        self._instruments = instruments
        self._labels = labels
        self._worker_id = worker_id
        # finding a series takes longer than adding to it
        self._series: dict[tuple[str, ...], Callable[[float], None]] = {}
        self._rules = self._known({**_OF_ALL, "dtq_worker_tasks_total": self._own_attempt})
        self._rules_of = {kind: [*self._rules, *self._known(table)] for kind, table in _OF_EACH.items()}

    def committed(self, change: Change) -> None:
        values = None
        rules = self._rules if change.event is None else self._rules_of.get(change.event.type, self._rules)
        for amount, name in rules:
            value = amount(change)
            if value is not None:
                values = values or self._values(change)
                self._add(name, value, values)

    def happened(self, event: Event) -> None:
        """No metric counts what belongs to no task."""

    def noticed(self, what: str, **details: str | float | bool | None) -> None:
        if what == "submission_rejected":
            self._rejected(details.get("queue"), reason=str(details.get("reason")))
        elif what == "result_dropped":
            self.operation("finish", "stale")

    def operation(self, operation: str, result: str) -> None:
        """Count a request to the broker's server; on any thread."""
        self._increase(OPERATIONS, operation, result)

    def _known(self, table: Mapping[str, Amount]) -> Sequence[tuple[Amount, str]]:
        """Return the rules of the metrics that this process has."""
        return [(amount, name) for name, amount in table.items() if name in self._instruments]

    def _own_attempt(self, change: Change) -> float | None:
        # what a lost worker left behind is ended by another one, and counted for neither
        is_own = change.before is not None and change.before.worker_id == self._worker_id
        return _attempted(change) if is_own else None

    def _rejected(self, queue: object, *, reason: str) -> None:
        if isinstance(queue, str) and reason in PROOFS:
            queue = self._labels.queue(queue)
        self._increase(REJECTED, self._labels.claimed_queue(queue), reason)

    def _increase(self, name: str, *labels: str) -> None:
        if name in self._instruments:
            self._grow((name, *labels), 1)

    def _add(self, name: str, value: float, values: Mapping[str, str]) -> None:
        self._grow((name, *[values[label] for label in _LABELS[name]]), value)

    def _grow(self, series: tuple[str, ...], value: float) -> None:
        grow = self._series.get(series)
        if grow is None:
            name, *labels = series
            grow = self._series[series] = _growth(self._instruments[name], labels)
        grow(value)

    def _values(self, change: Change) -> Mapping[str, str]:
        """Return what each label would have for a value."""
        return {
            "queue": self._labels.queue(change.after.queue),
            "task_type": self._labels.task_type(change.after.task_type),
            "status": change.after.status.value,
            "result": str(change.attempt_result),
            "worker_id": str(self._worker_id),
        }
