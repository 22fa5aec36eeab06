"""MetricsObserver: what happens, counted and measured by two tables."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final, NamedTuple

from prometheus_client import Counter, Histogram

from dtq.adapters.prometheus.definitions import METRICS, OPERATIONS, REJECTED
from dtq.adapters.prometheus.labels import Labels
from dtq.domain.change import Change
from dtq.domain.events import Event, EventType
from dtq.domain.outcome import AttemptResult
from dtq.domain.status import TERMINAL, TaskStatus

PROOFS: Final = frozenset({"queue_full", "idempotency"})
"""The reasons of a refusal that only a registered queue can give."""


class _Step(NamedTuple):
    """What steps have in common that add to the same series; all its values are of a bounded number."""

    event: EventType | None
    was: TaskStatus | None
    status: TaskStatus
    result: AttemptResult | None
    is_own: bool
    queue: str
    task_type: str


class _Tally(NamedTuple):
    """The series that one kind of step adds to."""

    counts: tuple[Callable[[], None], ...]
    measures: tuple[tuple["Amount", "Series"], ...]


Series = tuple[str, ...]
"""A metric and the values of its labels, in the order of its definition."""

Counts = Callable[[_Step], bool]
"""Whether a counter counts such a step."""

Amount = Callable[[Change], float | None]
"""What a histogram measures of a change; None where there is nothing to measure."""


def _on(kind: EventType) -> Counts:
    return lambda step: step.event is kind


def _completed(step: _Step) -> bool:
    return step.status in TERMINAL and step.was not in TERMINAL


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


_COUNTED: Final[Mapping[str, Counts]] = {
    "dtq_tasks_submitted_total": lambda step: step.was is None,
    "dtq_tasks_started_total": _on(EventType.TASK_STARTED),
    "dtq_tasks_succeeded_total": _on(EventType.TASK_SUCCEEDED),
    "dtq_tasks_failed_total": _on(EventType.TASK_FAILED),
    "dtq_tasks_retried_total": _on(EventType.TASK_RETRY_SCHEDULED),
    "dtq_tasks_dead_lettered_total": _on(EventType.TASK_DEAD_LETTERED),
    "dtq_tasks_completed_total": _completed,
    "dtq_task_attempts_total": lambda step: step.result is not None,
    # what a lost worker left behind is ended by another one, and counted for neither
    "dtq_worker_tasks_total": lambda step: step.result is not None and step.is_own,
}
"""Which steps a counter counts."""

_MEASURED: Final[Mapping[str, tuple[EventType, Amount]]] = {
    "dtq_task_wait_seconds": (EventType.TASK_STARTED, _wait),
    "dtq_task_duration_seconds": (EventType.TASK_SUCCEEDED, _duration),
    "dtq_task_execution_seconds": (EventType.TASK_SUCCEEDED, lambda change: _seconds(change.ran)),
    "dtq_retry_delay_seconds": (EventType.TASK_RETRY_SCHEDULED, lambda change: _seconds(change.after.retry_delay)),
}
"""What a histogram measures of the steps that have this event."""

_LABELS: Final = {metric.name: metric.labels for metric in METRICS}


class MetricsObserver:
    """Counts what it is told of, in those of *counters* and *histograms* that its process has."""

    def __init__(
        self,
        counters: Mapping[str, Counter],
        histograms: Mapping[str, Histogram],
        *,
        labels: Labels,
        worker_id: str | None,
    ) -> None:
        self._counters = counters
        self._histograms = histograms
        self._labels = labels
        self._worker_id = worker_id
        # finding the series takes longer than adding to them
        self._tallies: dict[tuple[object, ...], _Tally] = {}
        self._observe: dict[Series, Callable[[float], None]] = {}

    def committed(self, change: Change) -> None:
        before, after, event = change.before, change.after, change.event
        step = (
            None if event is None else event.type,
            None if before is None else before.status,
            after.status,
            change.attempt_result,
            before is not None and before.worker_id == self._worker_id,
            self._labels.queue(after.queue),
            self._labels.task_type(after.task_type),
        )
        tally = self._tallies.get(step)
        if tally is None:
            tally = self._tallies[step] = self._tally(_Step(*step))
        for count in tally.counts:
            count()
        for amount, series in tally.measures:
            value = amount(change)
            if value is not None:
                self._measured(series, value)

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

    def _rejected(self, queue: object, *, reason: str) -> None:
        if isinstance(queue, str) and reason in PROOFS:
            queue = self._labels.queue(queue)
        self._increase(REJECTED, self._labels.claimed_queue(queue), reason)

    def _increase(self, name: str, *labels: str) -> None:
        counter = self._counters.get(name)
        if counter is not None:
            counter.labels(*labels).inc()

    def _measured(self, series: Series, value: float) -> None:
        observe = self._observe.get(series)
        if observe is None:
            name, *labels = series
            # shown from now on: what was never measured is not shown as zeros
            observe = self._observe[series] = self._histograms[name].labels(*labels).observe
        observe(value)

    def _tally(self, step: _Step) -> _Tally:
        values = self._values(step)
        counters = [name for name, counts in _COUNTED.items() if name in self._counters and counts(step)]
        histograms = [
            (amount, name)
            for name, (event, amount) in _MEASURED.items()
            if name in self._histograms and event is step.event
        ]
        return _Tally(
            counts=tuple(self._counters[name].labels(*_labels_of(name, values)).inc for name in counters),
            measures=tuple((amount, (name, *_labels_of(name, values))) for amount, name in histograms),
        )

    def _values(self, step: _Step) -> Mapping[str, str]:
        """Return what each label would have for a value."""
        return {
            "queue": step.queue,
            "task_type": step.task_type,
            "status": step.status.value,
            "result": str(step.result),
            "worker_id": str(self._worker_id),
        }


def _labels_of(name: str, values: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(values[label] for label in _LABELS[name])
