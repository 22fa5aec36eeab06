"""Counters and histograms as plain sums, of which a scrape makes series: to add to them takes a step or two."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from threading import RLock
from typing import Final

from prometheus_client import Metric as Family
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from dtq.adapters.prometheus.definitions import BUCKETS, Kind, Metric

Labels = tuple[str, ...]
"""The values of a metric's labels, in the order of its definition."""

Series = tuple[str, Labels]
"""The name of a metric, and the values of its labels."""

Measured = tuple[list[int], float]
"""How many values were within each bound of a histogram, and their sum."""

_BOUNDS: Final = (*(str(float(bound)) for bound in BUCKETS), "+Inf")


class Tally:
    """How often something happened that each of ``series`` counts."""

    __slots__ = ("number", "series")

    def __init__(self, series: Iterable[Series]) -> None:
        self.series = tuple(series)
        self.number = 0


class Distribution:
    """The values that one series of a histogram was given."""

    __slots__ = ("numbers", "total")

    def __init__(self) -> None:
        self.numbers = [0] * len(_BOUNDS)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Add a value to the first bucket that takes it."""
        self.numbers[bisect_left(BUCKETS, value)] += 1
        self.total += value


class Sums(Collector):
    """The counters and histograms of one process. Whoever adds to what it has given out holds its lock meanwhile.

    What was never counted or measured is not shown as zeros.
    """

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics: Final = tuple(metrics)
        self.names: Final = frozenset(metric.name for metric in self._metrics)
        # what Python collects as garbage in the midst of it may count in its turn
        self.lock: Final = RLock()
        self._tallies: list[Tally] = []
        self._distributions: dict[Series, Distribution] = {}

    def tally(self, series: Iterable[Series]) -> Tally:
        """Return a new tally; those that share a series are added up in it."""
        tally = Tally(series)
        self._tallies.append(tally)
        return tally

    def distribution(self, series: Series) -> Distribution:
        """Return the one distribution of a series."""
        return self._distributions.setdefault(series, Distribution())

    def collect(self) -> Iterator[Family]:
        with self.lock:
            counts = self._counts()
            measures = self._measures()
        for metric in self._metrics:
            if metric.kind is Kind.COUNTER:
                yield _counter(metric, counts[metric.name])
            else:
                yield _histogram(metric, measures[metric.name])

    def _counts(self) -> Mapping[str, Mapping[Labels, int]]:
        counts: defaultdict[str, Counter[Labels]] = defaultdict(Counter)
        for tally in self._tallies:
            for name, labels in tally.series:
                counts[name][labels] += tally.number
        return counts

    def _measures(self) -> Mapping[str, Mapping[Labels, Measured]]:
        measures: defaultdict[str, dict[Labels, Measured]] = defaultdict(dict)
        for (name, labels), one in self._distributions.copy().items():
            if any(one.numbers):
                measures[name][labels] = list(accumulate(one.numbers)), one.total
        return measures


def _counter(metric: Metric, counts: Mapping[Labels, int]) -> Family:
    family = CounterMetricFamily(metric.name, metric.meaning, labels=metric.labels)
    for labels, number in counts.items():
        family.add_metric(labels, number)
    return family


def _histogram(metric: Metric, measures: Mapping[Labels, Measured]) -> Family:
    family = HistogramMetricFamily(metric.name, metric.meaning, labels=metric.labels)
    for labels, (numbers, total) in measures.items():
        family.add_metric(labels, list(zip(_BOUNDS, numbers, strict=True)), total)
    return family
