"""What the settings mean to each part of a process."""

import socket
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from dtq.application.audit import AuditTrail
from dtq.application.doctor import Doctor
from dtq.application.settings import WorkerSettings
from dtq.application.treatment import Treatment
from dtq.domain.admission import AdmissionRules, BrokerLimits
from dtq.domain.delivery import FailurePolicy
from dtq.domain.retention import Retention
from dtq.domain.retry import RetryPolicy
from dtq.domain.task import QueueName, WorkerId
from dtq.entrypoints.config import Settings
from dtq.handlers.registry import Registry
from dtq.ports.backend import Backend, BackendOptions, OnOperation, unheard
from dtq.ports.environment import Ids
from dtq.ports.events import Observer

CALL_TIMEOUT: Final = timedelta(seconds=4)
"""How long a request to the broker may take."""


def backend_options(settings: Settings, *, on_operation: OnOperation = unheard) -> BackendOptions:
    """Return what every adapter is told, as *settings* have it."""
    return BackendOptions(
        key_prefix=settings.key_prefix,
        retention=retention_of(settings),
        dead_letter_limit=settings.dlq_maxlen,
        call_timeout=CALL_TIMEOUT,
        on_operation=on_operation,
    )


def rules_of(settings: Settings, registry: Registry) -> AdmissionRules:
    """Return what a submission must keep to."""
    return AdmissionRules(
        task_types=registry.task_types,
        payload_problem=registry.payload_problem,
        max_payload_bytes=settings.max_payload_bytes,
        max_attempts=settings.max_attempts,
        default_timeout_ms=settings.task_timeout_ms,
    )


def limits_of(settings: Settings) -> BrokerLimits:
    """Return how much a broker may be given."""
    return BrokerLimits(
        queue_depth=settings.max_queue_depth, scheduled=settings.max_scheduled, queues=settings.max_queues
    )


def worker_settings_of(settings: Settings, worker_id: WorkerId) -> WorkerSettings:
    """Return how a worker is to work."""
    retry = RetryPolicy(
        base=timedelta(seconds=settings.retry_base_delay),
        maximum=timedelta(seconds=settings.retry_max_delay),
        jitter=settings.retry_jitter,
    )
    return WorkerSettings(
        worker_id=worker_id,
        hostname=socket.gethostname(),
        queue=QueueName(settings.worker_queue),
        concurrency=settings.worker_concurrency,
        visibility_timeout=timedelta(seconds=settings.visibility_timeout_s),
        heartbeat_interval=heartbeat_interval_of(settings),
        drain_timeout=timedelta(seconds=settings.drain_timeout_s),
        result_max_bytes=settings.result_max_bytes,
        failure_policy=FailurePolicy(retry=retry, dead_letters=settings.dlq_enabled),
        keep_alive_after=timedelta(seconds=settings.idem_ttl_s / 2),
    )


def heartbeat_interval_of(settings: Settings) -> timedelta:
    """Return how often a worker shows that it lives."""
    return timedelta(seconds=settings.heartbeat_interval_s)


def retention_of(settings: Settings) -> Retention:
    """Return how long what has ended is kept."""
    return Retention(
        task=timedelta(seconds=settings.task_retention_s),
        result=timedelta(seconds=settings.result_retention_s),
        idempotency=timedelta(seconds=settings.idem_ttl_s),
    )


def doctor_of(
    backend: Backend, settings: Settings, *, ids: Ids, trail: AuditTrail, observers: Sequence[Observer]
) -> Doctor:
    """Make the one who examines and repairs, who judges ages by the visibility timeout."""
    retention = retention_of(settings)
    treatment = Treatment(backend, ids=ids, trail=trail, observers=observers, retention=retention)
    visibility_timeout = timedelta(seconds=settings.visibility_timeout_s)
    return Doctor(backend, treatment=treatment, visibility_timeout=visibility_timeout)
