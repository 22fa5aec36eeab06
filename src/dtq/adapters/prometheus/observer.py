"""MetricsObserver: what happens, counted and measured by two tables."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import lru_cache
from operator import attrgetter
from typing import Final, NamedTuple

from dtq.adapters.prometheus.definitions import METRICS, OPERATIONS, REJECTED
from dtq.adapters.prometheus.labels import Labels
from dtq.adapters.prometheus.sums import Distribution, Series, Sums, Tally
from dtq.domain.change import Change
from dtq.domain.events import Event, EventType
from dtq.domain.outcome import AttemptResult
from dtq.domain.status import TERMINAL, TaskStatus

PROOFS: Final = frozenset({"queue_full", "idempotency"})
"""The reasons of a refusal that only a registered queue can give."""

_LABELED: Final = 1024
"""Of how many queues and task types the labels are kept."""


class _Step(NamedTuple):
    """What steps have in common that add to the same series; all its values are of a bounded number."""

    event: EventType | None
    was: TaskStatus | None
    status: TaskStatus
    result: AttemptResult | None
    is_own: bool
    of_task: tuple[str, str]


class _Kind(NamedTuple):
    """What one kind of step adds to."""

    tally: Tally
    measures: tuple[tuple["Amount", Distribution], ...]


Counts = Callable[[_Step], bool]
"""Whether a counter counts such a step."""

Amount = Callable[[Change], timedelta | None]
"""What a histogram measures of a change; None where there is nothing to measure."""


def _on(kind: EventType) -> Counts:
    return lambda step: step.event is kind


def _completed(step: _Step) -> bool:
    return step.status in TERMINAL and step.was not in TERMINAL


def _wait(change: Change) -> timedelta | None:
    before, after = change.before, change.after
    if before is None or after.started_at is None:
        return None
    # a record that was rebuilt does not tell of earlier starts
    is_first = before.started_at is None and before.requeued_at is None and before.is_stored
    return after.started_at - after.created_at if is_first else None


def _duration(change: Change) -> timedelta | None:
    task = change.after
    if task.finished_at is None:
        return None
    began_at = task.created_at if task.requeued_at is None else max(task.created_at, task.requeued_at)
    return task.finished_at - began_at


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
    "dtq_task_execution_seconds": (EventType.TASK_SUCCEEDED, attrgetter("ran")),
    "dtq_retry_delay_seconds": (EventType.TASK_RETRY_SCHEDULED, attrgetter("after.retry_delay")),
}
"""What a histogram measures of the steps that have this event."""

_LABELS: Final = {metric.name: metric.labels for metric in METRICS}


class MetricsObserver:
    """Counts what it is told of, in those of the counters and histograms that its process has; on any thread."""

    def __init__(self, sums: Sums, *, labels: Labels, worker_id: str | None) -> None:
        self._sums = sums
        self._labels = labels
        self._worker_id = worker_id
        # a queue and a task type are called the same for as long as a process lives
        self._labels_of_task = lru_cache(_LABELED)(labels.of_task)
        # finding the series takes longer than adding to them
        self._kinds: dict[tuple[object, ...], _Kind] = {}
        self._tallies: dict[Series, Tally] = {}

    def committed(self, *changes: Change) -> None:
        with self._sums.lock:
            for change in changes:
                before, after, event = change.before, change.after, change.event
                step = (
                    None if event is None else event.type,
                    None if before is None else before.status,
                    after.status,
                    change.attempt_result,
                    before is not None and before.worker_id == self._worker_id,
                    self._labels_of_task(after.queue, after.task_type),
                )
                kind = self._kinds.get(step)
                if kind is None:
                    kind = self._kinds[step] = self._kind(_Step(*step))
                kind.tally.number += 1
                for amount, distribution in kind.measures:
                    value = amount(change)
                    if value is not None:
                        # the server's clock may have been set back meanwhile
                        distribution.add(max(0.0, value.total_seconds()))

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
        if name not in self._sums.names:
            return
        series = (name, labels)
        with self._sums.lock:
            tally = self._tallies.get(series)
            if tally is None:
                tally = self._tallies[series] = self._sums.tally([series])
            tally.number += 1

    def _kind(self, step: _Step) -> _Kind:
        values, kept = self._values(step), self._sums.names
        counters = [name for name, counts in _COUNTED.items() if name in kept and counts(step)]
        measured = [
            (amount, name) for name, (event, amount) in _MEASURED.items() if name in kept and event is step.event
        ]
        return _Kind(
            tally=self._sums.tally(_series(name, values) for name in counters),
            measures=tuple((amount, self._sums.distribution(_series(name, values))) for amount, name in measured),
        )

    def _values(self, step: _Step) -> Mapping[str, str]:
        """Return what each label would have for a value."""
        queue, task_type = step.of_task
        return {
            "queue": queue,
            "task_type": task_type,
            "status": step.status.value,
            "result": str(step.result),
            "worker_id": str(self._worker_id),
        }


def _series(name: str, values: Mapping[str, str]) -> Series:
    return name, tuple(values[label] for label in _LABELS[name])
