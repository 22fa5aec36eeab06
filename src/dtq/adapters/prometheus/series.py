"""Counters and histograms that share one lock, so that a step of a task takes it once for all that it adds to.

The library's own take a lock, and several calls, for each value.
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from threading import Lock
from typing import Final

from prometheus_client import Metric as Family
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from dtq.adapters.prometheus.definitions import BUCKETS, Metric

LabelValues = tuple[str, ...]
"""The values of a metric's labels, in the order of its definition."""

_BOUNDS: Final = (*[str(float(bound)) for bound in BUCKETS], "+Inf")


class Count:
    """One series of a counter."""

    __slots__ = ("total",)

    def __init__(self) -> None:
        self.total = 0


class Spread:
    """One series of a histogram."""

    __slots__ = ("buckets", "total")

    def __init__(self) -> None:
        self.total = 0.0
        self.buckets = [0] * len(_BOUNDS)

    def add(self, value: float) -> None:
        """Add one value that was measured."""
        self.total += value
        self.buckets[bisect_left(BUCKETS, value)] += 1


class Counter(Collector):
    """The series of one counter; who asks for one, or adds to it, holds *lock*."""

    def __init__(self, metric: Metric, *, lock: Lock) -> None:
        self._metric = metric
        self._lock = lock
        self._series: dict[LabelValues, Count] = {}

    def of(self, labels: LabelValues) -> Count:
        """Return the series of these labels; there is one from now on."""
        found = self._series.get(labels)
        if found is None:
            found = self._series[labels] = Count()
        return found

    def collect(self) -> Iterator[Family]:
        with self._lock:
            seen = [(labels, one.total) for labels, one in self._series.items()]
        family = CounterMetricFamily(self._metric.name, self._metric.meaning, labels=self._metric.labels)
        for labels, total in seen:
            family.add_metric(labels, total)
        yield family


class Histogram(Collector):
    """The series of one histogram; who asks for one, or adds to it, holds *lock*."""

    def __init__(self, metric: Metric, *, lock: Lock) -> None:
        self._metric = metric
        self._lock = lock
        self._series: dict[LabelValues, Spread] = {}

    def of(self, labels: LabelValues) -> Spread:
        """Return the series of these labels; it is shown once it has a value."""
        found = self._series.get(labels)
        if found is None:
            found = self._series[labels] = Spread()
        return found

    def collect(self) -> Iterator[Family]:
        with self._lock:
            seen = [(labels, one.total, list(accumulate(one.buckets))) for labels, one in self._series.items()]
        family = HistogramMetricFamily(self._metric.name, self._metric.meaning, labels=self._metric.labels)
        for labels, total, counts in seen:
            if counts[-1]:
                family.add_metric(labels, list(zip(_BOUNDS, counts, strict=True)), sum_value=total)
        yield family
