"""Every metric there is: its name, kind, labels and meaning, and which processes expose it."""

from enum import StrEnum
from typing import Final

from msgspec import Struct


class Kind(StrEnum):
    """What can be done with a metric: counters and histograms are summed over processes, gauges are not."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Role(StrEnum):
    """A process that is scraped."""

    API = "api"
    WORKER = "worker"


class Metric(Struct, frozen=True, kw_only=True):
    """A metric as the contract has it (section 9), or one that was added."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    meaning: str
    roles: frozenset[Role]


_API: Final = frozenset({Role.API})
_WORKER: Final = frozenset({Role.WORKER})
_BOTH: Final = frozenset(Role)
_OF_TASKS: Final = ("queue", "task_type")

DEPTH: Final = "dtq_queue_depth"
PENDING: Final = "dtq_queue_pending"
SCHEDULED: Final = "dtq_retry_scheduled"
DEAD_LETTERS: Final = "dtq_dlq_depth"
WORKERS: Final = "dtq_workers_active"
INFLIGHT: Final = "dtq_worker_inflight"
LAG: Final = "dtq_event_loop_lag_seconds"
OPERATIONS: Final = "dtq_redis_operations_total"
REJECTED: Final = "dtq_ingest_rejected_total"


def _counter(name: str, labels: tuple[str, ...], roles: frozenset[Role], meaning: str) -> Metric:
    return Metric(name=name, kind=Kind.COUNTER, labels=labels, meaning=meaning, roles=roles)


def _gauge(name: str, labels: tuple[str, ...], roles: frozenset[Role], meaning: str) -> Metric:
    return Metric(name=name, kind=Kind.GAUGE, labels=labels, meaning=meaning, roles=roles)


def _histogram(name: str, meaning: str) -> Metric:
    return Metric(name=name, kind=Kind.HISTOGRAM, labels=_OF_TASKS, meaning=meaning, roles=_WORKER)


METRICS: Final = (
    _counter("dtq_tasks_submitted_total", _OF_TASKS, _API, "Tasks that were created."),
    _counter("dtq_tasks_started_total", _OF_TASKS, _WORKER, "Attempts that were begun."),
    _counter("dtq_tasks_succeeded_total", _OF_TASKS, _WORKER, "Tasks that succeeded."),
    _counter("dtq_tasks_failed_total", _OF_TASKS, _WORKER, "Tasks that were given up, dead letters being off."),
    _counter("dtq_tasks_retried_total", _OF_TASKS, _WORKER, "Attempts that failed and are to be repeated."),
    _counter("dtq_tasks_dead_lettered_total", _OF_TASKS, _WORKER, "Tasks that became dead letters."),
    _counter("dtq_tasks_completed_total", (*_OF_TASKS, "status"), _BOTH, "Tasks that reached a final status."),
    _counter("dtq_task_attempts_total", (*_OF_TASKS, "result"), _WORKER, "Attempts that ended."),
    _gauge(DEPTH, ("queue",), _API, "Tasks that wait in a queue or run, of all priorities."),
    _gauge(PENDING, ("queue",), _API, "Entries of a queue that workers own."),
    _gauge(SCHEDULED, (), _API, "Tasks that wait for their time: retries and delayed ones."),
    _gauge(DEAD_LETTERS, (), _API, "Dead letters that are kept."),
    _gauge(WORKERS, (), _API, "Workers that have shown a sign of life."),
    _gauge(INFLIGHT, ("worker_id",), _WORKER, "Attempts that run in a worker, or whose end it has yet to record."),
    _counter(
        "dtq_worker_tasks_total", ("worker_id", "task_type", "result"), _WORKER, "A worker's attempts that ended."
    ),
    _histogram("dtq_task_duration_seconds", "From creation, or requeue, to success."),
    _histogram("dtq_task_execution_seconds", "How long the handlers of successful attempts ran."),
    _histogram("dtq_task_wait_seconds", "From creation to the first start."),
    _histogram("dtq_retry_delay_seconds", "How long retries are put off."),
    _counter(OPERATIONS, ("operation", "result"), _BOTH, "Requests to Redis."),
    _counter(REJECTED, ("queue", "reason"), _API, "Submissions that were refused."),
    _gauge(LAG, (), _BOTH, "How late the event loop came at worst in the last minute."),
)

BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
"""Up to the longest timeout that a task may have."""
