"""How everything is put together; the only module that names an adapter.

A program builds one container and asks it for services; nobody hands the container on, and nothing inside the core
knows it. A test replaces the backend, and with it every port, before the first service is made:

    container = build(settings, registry=registry, service="test")
    container.backend.override(memory_backend)      # dtq.adapters.memory.connect("memory://", options=...)

A third party's adapter needs no change here: its package names its ``connect`` (dtq.ports.backend.Connect) in the
entry-point group ``dtq.brokers``, under the URL scheme it serves.
"""

import logging
import os
import socket
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urlsplit

from dependency_injector import containers, providers

from dtq.application.audit import AuditTrail
from dtq.application.beat_runner import BeatRunner, LoopBeat, ThreadBeat
from dtq.application.dead_letters import DeadLetterService
from dtq.application.fan_out import FanOut
from dtq.application.queues import QueueService
from dtq.application.settings import ExitCode, WorkerSettings
from dtq.application.tasks import TaskService
from dtq.application.waiting import Waiting
from dtq.application.worker import Worker
from dtq.application.workers import WorkerService
from dtq.domain.admission import AdmissionRules, BrokerLimits
from dtq.domain.delivery import FailurePolicy
from dtq.domain.errors import BrokerUnavailable
from dtq.domain.retention import Retention
from dtq.domain.retry import RetryPolicy
from dtq.domain.task import QueueName, WorkerId
from dtq.entrypoints.config import ADAPTER_GROUP, Settings
from dtq.handlers.registry import Registry
from dtq.ports.backend import Backend, BackendOptions, Connect
from dtq.ports.environment import Chance, Ids

if TYPE_CHECKING:
    from dtq.adapters.logs import LogObserver

CALL_TIMEOUT = timedelta(seconds=4)


class UnknownScheme(Exception):
    """No adapter serves the scheme of the broker's URL."""


def connect(url: str, *, options: BackendOptions) -> Backend:
    """Make the backend that the scheme of *url* names. Raises UnknownScheme."""
    return _connect_of(urlsplit(url).scheme)(url, options=options)


def _connect_of(scheme: str) -> Connect:
    if scheme in _OWN:
        return _OWN[scheme]()
    for point in entry_points(group=ADAPTER_GROUP, name=scheme):
        return cast("Connect", point.load())
    raise UnknownScheme(f"no adapter serves the scheme {scheme!r}")


# imported late, both of them: a process pays for the adapter it uses
def _redis() -> Connect:
    from dtq.adapters.redis import connect as connect_redis

    return connect_redis


def _memory() -> Connect:
    from dtq.adapters.memory import connect as connect_memory

    return connect_memory


_OWN: Final[Mapping[str, Callable[[], Connect]]] = {"redis": _redis, "rediss": _redis, "memory": _memory}


def known_own_schemes() -> tuple[str, ...]:
    """Return the URL schemes that dtq's own adapters serve."""
    return tuple(_OWN)


def retryable_errors() -> tuple[type[BaseException], ...]:
    """Return what is retried beside the errors that the domain knows: lost connections, the broker's and Redis' own."""
    from redis import exceptions

    return (BrokerUnavailable, exceptions.ConnectionError, exceptions.TimeoutError)


def _log_observer(settings: Settings, service: str, worker_id: WorkerId | None) -> "LogObserver":
    from dtq.adapters.logs import LogObserver

    return LogObserver(
        sys.stderr,
        service=service,
        level=settings.log_level,
        as_json=settings.log_json,
        colors=sys.stderr.isatty(),
        worker_id=worker_id,
    )


def _ids() -> Ids:
    from dtq.adapters.system import UuidIds

    return UuidIds()


def _chance() -> Chance:
    from dtq.adapters.system import SystemChance

    return SystemChance()


def _backend(settings: Settings) -> Backend:
    return connect(settings.redis_url, options=backend_options(settings))


def backend_options(settings: Settings) -> BackendOptions:
    """Return what every adapter is told, as *settings* have it."""
    retention = Retention(
        task=timedelta(seconds=settings.task_retention_s),
        result=timedelta(seconds=settings.result_retention_s),
        idempotency=timedelta(seconds=settings.idem_ttl_s),
    )
    return BackendOptions(
        key_prefix=settings.key_prefix,
        retention=retention,
        dead_letter_limit=settings.dlq_maxlen,
        call_timeout=CALL_TIMEOUT,
    )


def _rules(settings: Settings, registry: Registry) -> AdmissionRules:
    return AdmissionRules(
        task_types=registry.task_types,
        max_payload_bytes=settings.max_payload_bytes,
        max_attempts=settings.max_attempts,
        default_timeout_ms=settings.task_timeout_ms,
    )


def _limits(settings: Settings) -> BrokerLimits:
    return BrokerLimits(
        queue_depth=settings.max_queue_depth, scheduled=settings.max_scheduled, queues=settings.max_queues
    )


def _worker_settings(settings: Settings, worker_id: WorkerId) -> WorkerSettings:
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
        heartbeat_interval=_heartbeat_interval(settings),
        drain_timeout=timedelta(seconds=settings.drain_timeout_s),
        result_max_bytes=settings.result_max_bytes,
        failure_policy=FailurePolicy(retry=retry, dead_letters=settings.dlq_enabled),
        keep_alive_after=timedelta(seconds=settings.idem_ttl_s / 2),
    )


def _heartbeat_interval(settings: Settings) -> timedelta:
    return timedelta(seconds=settings.heartbeat_interval_s)


def _beat(backend: Backend) -> BeatRunner:
    return LoopBeat(backend) if backend.sibling is None else ThreadBeat(backend.sibling)


def _abort(code: ExitCode) -> None:
    """End this process at once: threads that hang could hold an orderly exit for ever."""
    sys.stderr.flush()
    os._exit(code)


class Container(containers.DeclarativeContainer):
    """The parts of one process, each made at most once, when it is first asked for."""

    settings = providers.Dependency(instance_of=Settings)
    registry = providers.Dependency(instance_of=Registry)
    service: providers.Dependency[str] = providers.Dependency(instance_of=str)
    worker_id: providers.Dependency[WorkerId | None] = providers.Dependency(default=None)

    backend = providers.Singleton(_backend, settings)
    ids = providers.Singleton(_ids)
    chance = providers.Singleton(_chance)
    log = providers.Singleton(_log_observer, settings, service, worker_id)
    observers = providers.List(log)

    rules = providers.Callable(_rules, settings, registry)
    trail = providers.Singleton(AuditTrail, backend.provided.audit, clock=backend.provided.clock, observers=observers)
    tasks = providers.Singleton(
        TaskService,
        broker=backend.provided.broker,
        clock=backend.provided.clock,
        ids=ids,
        signals=backend.provided.signals,
        trail=trail,
        observers=observers,
        rules=rules,
        limits=providers.Callable(_limits, settings),
    )
    workers = providers.Singleton(
        WorkerService,
        backend.provided.workers,
        clock=backend.provided.clock,
        heartbeat_interval=providers.Callable(_heartbeat_interval, settings),
    )
    queues = providers.Singleton(
        QueueService,
        backend.provided.queues,
        store=backend.provided.broker,
        dead_letters=backend.provided.dead_letters,
        workers=workers,
        signals=backend.provided.signals,
        clock=backend.provided.clock,
        ids=ids,
        trail=trail,
        observers=observers,
        max_queues=settings.provided.max_queues,
    )
    dead_letters = providers.Singleton(
        DeadLetterService,
        backend.provided.dead_letters,
        store=backend.provided.broker,
        clock=backend.provided.clock,
        ids=ids,
        trail=trail,
        observers=observers,
    )
    fan_out = providers.Singleton(
        FanOut,
        events=backend.provided.events,
        clock=backend.provided.clock,
        chance=chance,
        observers=observers,
        buffer=settings.provided.ws_buffer,
        max_clients=settings.provided.ws_max_clients,
    )
    waiting = providers.Singleton(Waiting, tasks, fan_out=fan_out, clock=backend.provided.clock)
    beat = providers.Singleton(_beat, backend)
    worker = providers.Singleton(
        Worker,
        backend,
        registry=registry,
        settings=providers.Callable(_worker_settings, settings, worker_id),
        ids=ids,
        chance=chance,
        observers=observers,
        retryable=providers.Callable(retryable_errors),
        beat=beat,
        abort=providers.Object(_abort),
    )


def take_over_logging(container: Container) -> None:
    """Bring what libraries log into the same lines as everything else."""
    from dtq.adapters.logs import LogHandler

    logging.basicConfig(handlers=[LogHandler(container.log())], level=logging.WARNING, force=True)


def build(settings: Settings, *, registry: Registry, service: str, worker_id: WorkerId | None = None) -> Container:
    """Put together a process that calls itself *service* in its logs."""
    return Container(settings=settings, registry=registry, service=service, worker_id=worker_id)


def worker_id_of(settings: Settings) -> WorkerId:
    """Return the id that a worker of *settings* has: the one that was set, or a new one."""
    return WorkerId(settings.worker_id) if settings.worker_id else _ids().worker()
