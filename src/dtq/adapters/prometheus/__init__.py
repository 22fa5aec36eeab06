"""Metrics for Prometheus: an observer that counts, and the text that is scraped."""

from prometheus_client import CollectorRegistry

from dtq.adapters.prometheus.definitions import METRICS, Kind, Metric, Role
from dtq.adapters.prometheus.metrics import Metrics

__all__ = ["METRICS", "CollectorRegistry", "Kind", "Metric", "Metrics", "Role"]
