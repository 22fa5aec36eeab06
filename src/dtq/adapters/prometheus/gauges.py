"""The gauges of the whole deployment, as they were last read."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from prometheus_client import Metric as Family
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from dtq.adapters.prometheus.definitions import DEAD_LETTERS, DEPTH, METRICS, PENDING, SCHEDULED, WORKERS
from dtq.ports.survey import Survey

Samples = Mapping[tuple[str, ...], int]
"""The values of one gauge by those of its labels."""

TABLE: Final[Mapping[str, Callable[[Survey, int], Samples]]] = {
    DEPTH: lambda survey, _: {(one.queue,): one.depth for one in survey.queues},
    PENDING: lambda survey, _: {(one.queue,): one.pending for one in survey.queues},
    SCHEDULED: lambda survey, _: {(): survey.scheduled},
    DEAD_LETTERS: lambda survey, _: {(): survey.dead_letters},
    WORKERS: lambda _, workers_active: {(): workers_active},
}
"""What a reading says of each gauge that is read from the broker, and not counted in this process."""

_METRICS: Final = [metric for metric in METRICS if metric.name in TABLE]


class ClusterGauges(Collector):
    """Shows the last reading, and no samples where there is none: an old figure would pass for a new one."""

    def __init__(self) -> None:
        self._shown: tuple[Survey, int] | None = None

    def show(self, survey: Survey | None, *, workers_active: int) -> None:
        """Show what was just read; None where nothing could be."""
        self._shown = None if survey is None else (survey, workers_active)

    def collect(self) -> Iterator[Family]:
        shown = self._shown
        for metric in _METRICS:
            family = GaugeMetricFamily(metric.name, metric.meaning, labels=metric.labels)
            for labels, value in TABLE[metric.name](*shown).items() if shown else ():
                family.add_metric(labels, value)
            yield family
