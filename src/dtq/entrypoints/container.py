"""How everything is put together; the only module that names an adapter.

A program builds one container and asks it for services; nobody hands the container on, and nothing inside the core
knows it. A test replaces the backend, and with it every port, before the first service is made:

    container = build(settings, registry=registry, service="test")
    container.backend.override(memory_backend)      # dtq.adapters.memory.connect("memory://", options=...)

A third party's adapter needs no change here: its package names its ``connect`` (dtq.ports.backend.Connect) in the
entry-point group ``dtq.brokers``, under the URL scheme it serves.
"""

import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urlsplit

from dependency_injector import containers, providers

from dtq.application.audit import AuditTrail
from dtq.application.beat_runner import BeatRunner, LoopBeat, ThreadBeat
from dtq.application.dead_letters import DeadLetterService
from dtq.application.explaining import ExplanationService
from dtq.application.fan_out import FanOut
from dtq.application.lag import LoopLag
from dtq.application.queues import QueueService
from dtq.application.readings import Readings
from dtq.application.tasks import TaskService
from dtq.application.waiting import Waiting
from dtq.application.worker import Worker
from dtq.application.workers import WorkerService
from dtq.domain.errors import BrokerUnavailable
from dtq.domain.task import WorkerId
from dtq.entrypoints.broker_url import announced
from dtq.entrypoints.config import Settings
from dtq.entrypoints.leaving import leave
from dtq.entrypoints.part_options import (
    backend_options,
    doctor_of,
    heartbeat_interval_of,
    limits_of,
    rules_of,
    worker_settings_of,
)
from dtq.handlers.registry import Registry
from dtq.ports.backend import Backend, BackendOptions, Connect, OnOperation, unheard
from dtq.ports.environment import Chance, Clock, Ids
from dtq.ports.events import Observer

if TYPE_CHECKING:
    from dtq.adapters.logs import LogObserver
    from dtq.adapters.memory import ManualClock
    from dtq.adapters.prometheus import CollectorRegistry, Metrics


class UnknownScheme(Exception):
    """No adapter serves the scheme of the broker's URL."""


def connect(url: str, *, options: BackendOptions) -> Backend:
    """Make the backend that the scheme of *url* names. Raises UnknownScheme."""
    return _connect_of(urlsplit(url).scheme)(url, options=options)


def _connect_of(scheme: str) -> Connect:
    if scheme in _OWN:
        return _OWN[scheme]()
    for point in announced(scheme):
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


def host() -> tuple[Clock, Ids]:
    """Return this host's own clock, and ids that nobody else has, for what talks to no broker."""
    from dtq.adapters.system import SystemClock

    return SystemClock(), _ids()


def standing_still(options: BackendOptions) -> "tuple[Backend, ManualClock]":
    """Make a backend in memory whose time stands still until its clock is moved by hand."""
    from dtq.adapters.memory import ManualClock, State, backend_of

    clock = ManualClock(shortest=timedelta(microseconds=1))
    return backend_of(State(clock, options=options)), clock


METERED: Final = frozenset({"api", "worker"})
"""The services that keep metrics: a command ends before anybody could scrape it."""


def _collectors() -> "CollectorRegistry":
    from dtq.adapters.prometheus import CollectorRegistry

    return CollectorRegistry()


def _metrics(
    collectors: "CollectorRegistry", settings: Settings, registry: Registry, service: str, worker_id: WorkerId | None
) -> "Metrics":
    from dtq.adapters.prometheus import Metrics, Role

    return Metrics(
        collectors,
        role=Role.WORKER if service == Role.WORKER else Role.API,
        task_types=registry.task_types,
        max_queues=settings.max_queues,
        worker_id=worker_id,
    )


def _observers(log: Observer, service: str, metrics: Callable[[], "Metrics"]) -> list[Observer]:
    return [log, metrics().observer] if service in METERED else [log]


def _on_operation(service: str, metrics: Callable[[], "Metrics"]) -> OnOperation:
    return metrics().observer.operation if service in METERED else unheard


def _in_context(registry: Registry) -> Registry:
    from dtq.adapters.logs import in_context

    return in_context(registry)


def _backend(settings: Settings, on_operation: OnOperation) -> Backend:
    return connect(settings.redis_url, options=backend_options(settings, on_operation=on_operation))


def _beat(backend: Backend) -> BeatRunner:
    return LoopBeat(backend) if backend.sibling is None else ThreadBeat(backend.sibling)


class Container(containers.DeclarativeContainer):
    """The parts of one process, each made at most once, when it is first asked for."""

    settings = providers.Dependency(instance_of=Settings)
    registry = providers.Dependency(instance_of=Registry)
    service: providers.Dependency[str] = providers.Dependency(instance_of=str)
    worker_id: providers.Dependency[WorkerId | None] = providers.Dependency(default=None)

    collectors = providers.Singleton(_collectors)
    metrics = providers.Singleton(_metrics, collectors, settings, registry, service, worker_id)
    backend = providers.Singleton(_backend, settings, providers.Callable(_on_operation, service, metrics.provider))
    ids = providers.Singleton(_ids)
    chance = providers.Singleton(_chance)
    log = providers.Singleton(_log_observer, settings, service, worker_id)
    observers = providers.Callable(_observers, log, service, metrics.provider)

    rules = providers.Callable(rules_of, settings, registry)
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
        limits=providers.Callable(limits_of, settings),
    )
    workers = providers.Singleton(
        WorkerService,
        backend.provided.workers,
        clock=backend.provided.clock,
        heartbeat_interval=providers.Callable(heartbeat_interval_of, settings),
    )
    explaining = providers.Singleton(
        ExplanationService, backend.provided.locator, workers=workers, clock=backend.provided.clock
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
    doctor = providers.Singleton(doctor_of, backend, settings, ids=ids, trail=trail, observers=observers)
    waiting = providers.Singleton(Waiting, tasks, fan_out=fan_out, clock=backend.provided.clock)
    readings = providers.Singleton(
        Readings,
        backend.provided.surveyor,
        clock=backend.provided.clock,
        heartbeat_interval=providers.Callable(heartbeat_interval_of, settings),
        max_queues=settings.provided.max_queues,
        observers=observers,
    )
    lag = providers.Singleton(LoopLag, backend.provided.clock, observer=log)
    beat = providers.Singleton(_beat, backend)
    worker = providers.Singleton(
        Worker,
        backend,
        registry=providers.Callable(_in_context, registry),
        settings=providers.Callable(worker_settings_of, settings, worker_id),
        ids=ids,
        chance=chance,
        observers=observers,
        retryable=providers.Callable(retryable_errors),
        beat=beat,
        abort=providers.Object(leave),
    )


def take_over_logging(container: Container) -> None:
    """Bring what handlers and libraries log, and crashes, into the same lines as everything else."""
    from dtq.adapters.logs import take_over

    settings = container.settings()
    packages = {name.partition(".")[0] for name in settings.modules}
    take_over(container.log(), level=settings.log_level, packages=packages)


def build(settings: Settings, *, registry: Registry, service: str, worker_id: WorkerId | None = None) -> Container:
    """Put together a process that calls itself *service* in its logs."""
    return Container(settings=settings, registry=registry, service=service, worker_id=worker_id)


def worker_id_of(settings: Settings) -> WorkerId:
    """Return the id that a worker of *settings* has: the one that was set, or a new one."""
    return WorkerId(settings.worker_id) if settings.worker_id else _ids().worker()
