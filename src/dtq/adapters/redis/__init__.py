"""The broker on Redis Streams, or Valkey's: complete, over one server or one slot of a cluster."""

from collections.abc import Callable

from dtq.adapters.redis.broker import RedisBroker
from dtq.adapters.redis.client import Client
from dtq.adapters.redis.clock import RedisClock
from dtq.adapters.redis.dead_letters import RedisDeadLetters
from dtq.adapters.redis.events import RedisAuditLog, RedisEventBus
from dtq.adapters.redis.examination import RedisExaminer
from dtq.adapters.redis.keys import Keyspace
from dtq.adapters.redis.link import Link
from dtq.adapters.redis.locating import RedisLocator
from dtq.adapters.redis.queues import RedisQueues
from dtq.adapters.redis.scripts import Scripts
from dtq.adapters.redis.server import RedisServer
from dtq.adapters.redis.survey import RedisSurveyor
from dtq.adapters.redis.upkeep import RedisUpkeep
from dtq.adapters.redis.workers import RedisLeadership, RedisSignals, RedisWorkers
from dtq.ports.backend import Backend, BackendOptions

__all__ = ["backend_of", "connect"]


def connect(url: str, *, options: BackendOptions) -> Backend:
    """Make the backend of a ``redis://``, ``rediss://`` or ``unix://`` URL. Raises ValueError where it is none."""
    client = Client(url, timeout=options.call_timeout, on_operation=options.on_operation)
    clock = RedisClock()
    link = Link(
        client=client,
        scripts=Scripts(client, clock=clock),
        keys=Keyspace(options.key_prefix),
        clock=clock,
        options=options,
    )
    return backend_of(link, sibling=lambda: connect(url, options=options))


def backend_of(link: Link, *, sibling: Callable[[], Backend] | None = None) -> Backend:
    """Offer all ports over one link."""
    return Backend(
        broker=RedisBroker(link),
        queues=RedisQueues(link),
        upkeep=RedisUpkeep(link),
        dead_letters=RedisDeadLetters(link),
        workers=RedisWorkers(link),
        leadership=RedisLeadership(link),
        signals=RedisSignals(link),
        events=RedisEventBus(link),
        audit=RedisAuditLog(link),
        surveyor=RedisSurveyor(link),
        locator=RedisLocator(link),
        examiner=RedisExaminer(link),
        server=RedisServer(link),
        clock=link.clock,
        sibling=sibling,
    )
