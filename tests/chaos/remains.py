"""What a server holds when all is over."""

from collections.abc import Iterator

import msgspec

from dtq.adapters.redis.codec import SNAPSHOT, task_of
from dtq.adapters.redis.keys import BANDS, GROUP
from dtq.domain.admission import DEFAULT_QUEUE
from dtq.domain.idempotency import IdempotencyRecord
from dtq.domain.task import EntryId, QueueName, Task, TaskId
from tests.chaos.deployment import Deployment
from tests.judged.census import is_bounded
from tests.simulation.history import Entry, Remains


def remains_of(deployment: Deployment) -> Remains:
    """Read all that the checkers ask of."""
    system = deployment.system
    redis, keys = system.redis, system.keys
    entries = [
        Entry(DEFAULT_QUEUE, priority, EntryId(entry_id), fields.get("task_id", ""), None)
        for priority, stream in zip(BANDS, keys.streams(DEFAULT_QUEUE), strict=True)
        for entry_id, fields in redis.xrange(stream)
    ]
    pending = sum(
        redis.xpending(stream, GROUP)["pending"] for stream in keys.streams(DEFAULT_QUEUE) if redis.exists(stream)
    )
    scheduled = [*redis.zrange(keys.schedule, 0, -1), *redis.zrange(keys.claimed, 0, -1)]
    return Remains(
        tasks=dict(_tasks(deployment)),
        schedule=[TaskId(one) for one in scheduled],
        entries=entries,
        letters={EntryId(entry_id): fields["task_id"] for entry_id, fields in redis.xrange(keys.dead_letters)},
        results=_texts(deployment, keys.result(TaskId(""))),
        keys=dict(_records(deployment)),
        sizes=dict(_sizes(deployment)),
        stats={DEFAULT_QUEUE: (len(entries), pending, len(scheduled))},
    )


def _tasks(deployment: Deployment) -> Iterator[tuple[TaskId, Task]]:
    system = deployment.system
    prefix = system.keys.task_prefix
    for key in system.redis.scan_iter(match=f"{prefix}*", count=1000):
        task_id = key.removeprefix(prefix)
        values = system.redis.hmget(key, *SNAPSHOT)
        task = task_of(values, task_id=task_id, payload=system.redis.hget(key, "payload"))
        assert task is not None, key
        yield TaskId(task_id), task


def _texts(deployment: Deployment, prefix: str) -> dict[TaskId, str]:
    redis = deployment.system.redis
    return {TaskId(key.removeprefix(prefix)): redis.get(key) for key in redis.scan_iter(match=f"{prefix}*", count=1000)}


def _records(deployment: Deployment) -> Iterator[tuple[tuple[QueueName, str], IdempotencyRecord]]:
    prefix = deployment.system.keys.idempotency(DEFAULT_QUEUE, "")
    for key, text in _texts(deployment, prefix).items():
        yield (DEFAULT_QUEUE, str(key)), msgspec.json.decode(text, type=IdempotencyRecord)


def _sizes(deployment: Deployment) -> Iterator[tuple[str, tuple[int, int]]]:
    """What must be bounded, and its bound."""
    system = deployment.system
    redis, keys = system.redis, system.keys
    boundless = [
        key
        for key in redis.scan_iter(match=f"{system.prefix}:*", count=1000)
        if redis.ttl(key) == -1 and not is_bounded(system, key, key.removeprefix(f"{system.prefix}:"))
    ]
    yield f"keys without lifetime or bound {boundless[:3]}", (len(boundless), 0)
    slots = len(deployment.slots)
    yield "worker names", (redis.scard(keys.workers), 2 * slots)
    for stream in keys.streams(DEFAULT_QUEUE):
        if redis.exists(stream):
            yield f"consumers of {stream}", (len(redis.xinfo_consumers(stream, GROUP)), 3 * slots)


def keys_of(deployment: Deployment) -> dict[str, int]:
    """Count the keys of each kind."""
    found: dict[str, int] = {}
    for key in deployment.system.redis.scan_iter(match=f"{deployment.system.prefix}:*", count=1000):
        kind = key.removeprefix(f"{deployment.system.prefix}:").split(":")[0]
        found[kind] = found.get(kind, 0) + 1
    return found
