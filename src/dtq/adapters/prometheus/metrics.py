"""The metrics of one process, in one registry of its own."""

from collections.abc import Callable, Collection
from typing import Final

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from dtq.adapters.prometheus.definitions import INFLIGHT, LAG, METRICS, Kind, Metric, Role
from dtq.adapters.prometheus.gauges import TABLE, ClusterGauges
from dtq.adapters.prometheus.labels import Labels
from dtq.adapters.prometheus.observer import MetricsObserver
from dtq.adapters.prometheus.sums import Sums
from dtq.ports.survey import Survey


class Metrics:
    """Counts in its observer, is told or asks for gauges, and writes all of them down as text."""

    content_type: Final = CONTENT_TYPE_PLAIN_0_0_4

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        role: Role,
        task_types: Collection[str],
        max_queues: int,
        worker_id: str | None,
    ) -> None:
        self._registry = registry
        self._worker_id = worker_id
        self._labels = Labels(task_types=task_types, max_queues=max_queues)
        self._cluster = ClusterGauges()
        if role is Role.API:
            registry.register(self._cluster)
        own = [metric for metric in METRICS if role in metric.roles and metric.name not in TABLE]
        self._gauges = {metric.name: _gauge(metric, registry) for metric in own if metric.kind is Kind.GAUGE}
        sums = Sums(metric for metric in own if metric.kind is not Kind.GAUGE)
        registry.register(sums)
        self.observer: Final = MetricsObserver(sums, labels=self._labels, worker_id=worker_id)

    def watch_loop(self, lag: Callable[[], float]) -> None:
        """Show what *lag* returns, in seconds; it is called on any thread."""
        self._gauges[LAG].set_function(lag)

    def watch_worker(self, active: Callable[[], int]) -> None:
        """Show what *active* returns; it is called on any thread."""
        self._gauges[INFLIGHT].labels(self._worker_id).set_function(active)

    def show(self, survey: Survey | None, *, workers_active: int) -> None:
        """Show what was just read of the whole deployment; None where nothing could be read."""
        if survey is not None:
            self._labels.learn(one.queue for one in survey.queues)
        self._cluster.show(survey, workers_active=workers_active)

    def text(self) -> bytes:
        """Write everything down in the text format of Prometheus; on any thread."""
        return generate_latest(self._registry)


def _gauge(metric: Metric, registry: CollectorRegistry) -> Gauge:
    return Gauge(metric.name, metric.meaning, metric.labels, registry=registry)
