"""Steps of tasks, and what a process shows that has made them."""

from datetime import timedelta
from typing import Any

from dtq.adapters.prometheus import METRICS, CollectorRegistry, Kind, Metrics, Role
from dtq.domain.change import Change
from dtq.domain.delivery import Claim, FailurePolicy, finish, start
from dtq.domain.outcome import Outcome
from dtq.domain.status import TaskStatus
from dtq.domain.task import Task, WorkerId
from tests.factories import NOW, TASK_TYPE, WORKER, a_lease, a_task, a_token
from tests.scraped import Scraped

SECOND = timedelta(seconds=1)


def metrics_of(role: Role, *, max_queues: int = 10, worker_id: str = WORKER) -> Metrics:
    registry = CollectorRegistry()
    return Metrics(registry, role=role, task_types={TASK_TYPE}, max_queues=max_queues, worker_id=worker_id)


def scraped(metrics: Metrics) -> Scraped:
    return Scraped(metrics.text().decode())


def after(*changes: object, role: Role = Role.WORKER) -> Scraped:
    """What a process shows that has made these changes."""
    metrics = metrics_of(role)
    for change in changes:
        assert isinstance(change, Change)
        metrics.observer.committed(change)
    return scraped(metrics)


def counts(shown: Scraped) -> dict[str, float]:
    """The counters that count, and how often each histogram observed something."""
    return {
        metric.name: total
        for metric in METRICS
        if metric.kind is not Kind.GAUGE
        if (total := sum(shown.of(_counting(metric.name, metric.kind)).values()))
    }


def _counting(name: str, kind: Kind) -> str:
    return f"{name}_count" if kind is Kind.HISTOGRAM else name


def started(task: Task, *, worker: WorkerId = WORKER) -> Change:
    receipt = task.receipt
    assert receipt is not None
    claim = Claim(worker=worker, lease=a_lease(), receipt=receipt)
    change = start(task, claim=claim, now=NOW + 5 * SECOND, token=a_token(), policy=FailurePolicy())
    assert isinstance(change, Change)
    return change


def finished(outcome: Outcome, *, policy: FailurePolicy | None = None, **task: Any) -> Change:
    running = a_task(status=TaskStatus.RUNNING, **task)
    assert running.lease is not None
    change = finish(
        running,
        lease=running.lease,
        outcome=outcome,
        now=NOW + 9 * SECOND,
        token=a_token(),
        policy=policy or FailurePolicy(),
        jitter=0,
    )
    assert isinstance(change, Change)
    return change
