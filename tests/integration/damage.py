"""Damage by hand: each function spoils one thing in Redis, and says as what the doctor is to find it."""

import json
from collections.abc import Callable

from dtq.adapters.redis.wire import heartbeat_fields
from dtq.domain.facts import LAST_ENTRY_ID
from dtq.domain.findings import Kind
from dtq.domain.task import TaskId
from tests.factories import a_heartbeat
from tests.judged.system import System, a_task

GHOST = "worker-0000dead"
LONG_AGO_MS = 3_600_000


def stream(system: System, priority: int = 5) -> str:
    return f"{system.prefix}:stream:default:p{priority}"


def without_home(system: System) -> tuple[Kind, str]:
    (task_id,) = system.create(a_task("echo"))
    system.redis.xdel(stream(system), system.redis.hget(system.keys.task(task_id), "entry_id"))
    return Kind.HOMELESS, task_id


def delayed_without_home(system: System) -> tuple[Kind, str]:
    (task_id,) = system.create(a_task("echo", delay_seconds=1))
    system.redis.zrem(system.keys.schedule, task_id)
    return Kind.HOMELESS, task_id


def entry_without_record(system: System) -> tuple[Kind, str]:
    (task_id,) = system.create(a_task("echo"))
    entry_id = system.redis.hget(system.keys.task(task_id), "entry_id")
    system.redis.delete(system.keys.task(task_id))
    return Kind.ORPHAN_ENTRY, f"default p5 {entry_id}"


def entry_of_nothing(system: System) -> tuple[Kind, str]:
    entry_id = system.redis.xadd(stream(system), {"task_id": "nonsense", "payload": "{}"})
    return Kind.ORPHAN_ENTRY, f"default p5 {entry_id}"


def two_entries(system: System) -> tuple[Kind, str]:
    (task_id,) = system.create(a_task("echo"))
    own = system.redis.hget(system.keys.task(task_id), "entry_id")
    ((_, fields),) = system.redis.xrange(stream(system), own, own)
    return Kind.SURPLUS_ENTRY, f"default p5 {system.redis.xadd(stream(system), fields)}"


def entry_without_payload(system: System) -> tuple[Kind, str]:
    (task_id,) = system.create(a_task("echo"))
    own = system.redis.hget(system.keys.task(task_id), "entry_id")
    ((_, fields),) = system.redis.xrange(stream(system), own, own)
    emptied = system.redis.xadd(stream(system), {name: text for name, text in fields.items() if name != "payload"})
    system.redis.hset(system.keys.task(task_id), "entry_id", emptied)
    system.redis.xdel(stream(system), own)
    return Kind.HOLLOW_ENTRY, task_id


def scheduled_and_entered(system: System) -> tuple[Kind, str]:
    (task_id,) = system.create(a_task("echo"))
    system.redis.zadd(system.keys.schedule, {task_id: 4_000_000_000_000})
    return Kind.STRAY_MEMBER, task_id


def scheduled_in_vain(system: System) -> tuple[Kind, str]:
    system.redis.zadd(system.keys.schedule, {"f" * 32: 1_000})
    return Kind.STRAY_MEMBER, "f" * 32


def claimed_in_vain(system: System) -> tuple[Kind, str]:
    system.redis.zadd(system.keys.claimed, {"e" * 32: 1_000})
    return Kind.STRAY_MEMBER, "e" * 32


def scheduled_for_ever(system: System) -> tuple[Kind, str]:
    (task_id,) = system.create(a_task("echo", delay_seconds=1))
    system.redis.zadd(system.keys.schedule, {task_id: float("inf")})
    return Kind.MISTIMED, task_id


def on_loan_for_ever(system: System) -> tuple[Kind, str]:
    (task_id,) = system.create(a_task("echo", delay_seconds=1))
    system.redis.zrem(system.keys.schedule, task_id)
    system.redis.zadd(system.keys.claimed, {task_id: 32_503_680_000_000})
    return Kind.MISTIMED, task_id


def on_loan_and_scheduled(system: System) -> tuple[Kind, str]:
    (task_id,) = system.create(a_task("echo", delay_seconds=1))
    system.redis.zadd(system.keys.claimed, {task_id: 1_000})
    return Kind.MISTIMED, task_id


def leaked_key(system: System) -> tuple[Kind, str]:
    text = json.dumps({"task_id": "d" * 32, "state": "processing", "updated_at": "2026-01-01T00:00:00Z"})
    system.redis.set(f"{system.prefix}:idempotency:default:leaked", text, ex=86_400)
    return Kind.KEY, "default leaked"


def contradicting_key(system: System) -> tuple[Kind, str]:
    (task_id,) = system.create(a_task("echo", idempotency_key="other"))
    text = json.dumps({"task_id": task_id, "state": "completed", "updated_at": "2026-01-01T00:00:00Z"})
    system.redis.set(f"{system.prefix}:idempotency:default:other", text.replace(" ", ""), ex=86_400)
    return Kind.KEY, "default other"


def eternal_record(system: System) -> tuple[Kind, str]:
    (task_id,) = system.create(a_task("echo"))
    system.redis.persist(system.keys.task(task_id))
    return Kind.ETERNAL, system.keys.task(task_id)


def short_record(system: System) -> tuple[Kind, str]:
    (task_id,) = system.create(a_task("echo"))
    system.redis.expire(system.keys.task(task_id), 600)
    return Kind.SHORT, system.keys.task(task_id)


def eternal_result(system: System) -> tuple[Kind, str]:
    system.redis.set(f"{system.prefix}:result:{'c' * 32}", "{}")
    return Kind.ETERNAL, f"{system.prefix}:result:{'c' * 32}"


def unknown_key(system: System) -> tuple[Kind, str]:
    system.redis.set(f"{system.prefix}:whatever", "1", ex=86_400)
    return Kind.FOREIGN, f"{system.prefix}:whatever"


def key_of_another_type(system: System) -> tuple[Kind, str]:
    system.redis.set(f"{system.prefix}:task:{'b' * 32}", "text", ex=86_400)
    return Kind.WRONG_TYPE, f"{system.prefix}:task:{'b' * 32}"


def unreadable_record(system: System) -> tuple[Kind, str]:
    (task_id,) = system.create(a_task("echo", queue="spoiled"))
    system.redis.hset(system.keys.task(task_id), "status", "nonsense")
    return Kind.UNREADABLE, task_id


def missing_payload(system: System) -> tuple[Kind, str]:
    (task_id,) = system.create(a_task("echo", queue="spoiled", delay_seconds=1))
    system.redis.hdel(system.keys.task(task_id), "payload")
    return Kind.UNREADABLE, task_id


def missing_group(system: System) -> tuple[Kind, str]:
    system.redis.xgroup_destroy(stream(system, 3), "workers")
    return Kind.GROUP, "default"


def group_ahead(system: System) -> tuple[Kind, str]:
    system.redis.xgroup_setid(stream(system, 2), "workers", "9999999999999-0")
    return Kind.AHEAD, "default"


def spoiled_count(system: System) -> tuple[Kind, str]:
    system.create(a_task("echo", queue="counted", delay_seconds=1))
    system.redis.hset(system.keys.queues, "counted", "many")
    return Kind.COUNT, "counted"


def wrong_count(system: System) -> tuple[Kind, str]:
    system.create(a_task("echo", queue="miscounted", delay_seconds=1))
    system.redis.hset(system.keys.queues, "miscounted", "7")
    return Kind.COUNT, "miscounted"


def impossible_queue(system: System) -> tuple[Kind, str]:
    system.redis.hset(system.keys.queues, "No Queue", "0")
    return Kind.BAD_NAME, "No Queue"


def unregistered_queue(system: System) -> tuple[Kind, str]:
    system.create(a_task("echo", queue="forgotten"))
    system.redis.hdel(system.keys.queues, "forgotten")
    return Kind.UNREGISTERED, "forgotten"


def missing_letter(system: System) -> tuple[Kind, str]:
    task_id = dead(system)
    system.redis.xdel(system.keys.dead_letters, system.redis.hget(system.keys.task(task_id), "dlq_entry_id"))
    return Kind.LETTER_MISSING, task_id


def surplus_letter(system: System) -> tuple[Kind, str]:
    task_id = dead(system)
    own = system.redis.hget(system.keys.task(task_id), "dlq_entry_id")
    ((_, fields),) = system.redis.xrange(system.keys.dead_letters, own, own)
    return Kind.LETTER_SURPLUS, system.redis.xadd(system.keys.dead_letters, fields)


def endless_lock(system: System) -> tuple[Kind, str]:
    system.redis.set(system.keys.lock, "nobody", ex=31_536_000)
    return Kind.LOCK, system.keys.lock


def eternal_heartbeat(system: System) -> tuple[Kind, str]:
    key = f"{system.prefix}:worker:worker-0000beef"
    system.redis.hset(key, mapping=heartbeat("worker-0000beef"))
    system.redis.sadd(system.keys.workers, "worker-0000beef")
    return Kind.ETERNAL, key


def unlisted_worker(system: System) -> tuple[Kind, str]:
    key = f"{system.prefix}:worker:worker-0000cafe"
    system.redis.hset(key, mapping=heartbeat("worker-0000cafe"))
    system.redis.expire(key, 600)
    return Kind.HEARTBEAT, "worker-0000cafe"


def abandoned(system: System) -> tuple[Kind, str]:
    (task_id,) = system.create(a_task("echo", priority=7))
    read = system.redis.xreadgroup("workers", GHOST, {stream(system, 7): ">"}, count=1)
    ((_, ((entry_id, _),)),) = read
    system.redis.xclaim(stream(system, 7), "workers", GHOST, 0, [entry_id], idle=LONG_AGO_MS)
    return Kind.ABANDONED, task_id


def acknowledged_by_hand(system: System) -> tuple[Kind, str]:
    (task_id,) = system.create(a_task("echo", priority=8))
    ((_, ((entry_id, _),)),) = system.redis.xreadgroup("workers", GHOST, {stream(system, 8): ">"}, count=1)
    system.redis.xack(stream(system, 8), "workers", entry_id)
    return Kind.ABANDONED, task_id


def used_up_stream(system: System) -> tuple[Kind, str]:
    name = stream(system, 1)
    system.redis.xadd(name, {"a": "b"}, id=LAST_ENTRY_ID)
    system.redis.xdel(name, LAST_ENTRY_ID)
    return Kind.EXHAUSTED, name


CORRUPTIONS: list[Callable[[System], tuple[Kind, str]]] = [
    abandoned,
    acknowledged_by_hand,
    without_home,
    delayed_without_home,
    entry_without_record,
    entry_of_nothing,
    two_entries,
    entry_without_payload,
    scheduled_and_entered,
    scheduled_in_vain,
    claimed_in_vain,
    scheduled_for_ever,
    on_loan_for_ever,
    on_loan_and_scheduled,
    leaked_key,
    contradicting_key,
    eternal_record,
    short_record,
    eternal_result,
    unknown_key,
    key_of_another_type,
    unreadable_record,
    missing_payload,
    spoiled_count,
    wrong_count,
    impossible_queue,
    unregistered_queue,
    missing_letter,
    surplus_letter,
    endless_lock,
    eternal_heartbeat,
    unlisted_worker,
    missing_group,
    group_ahead,
    used_up_stream,
]


def dead(system: System) -> TaskId:
    """Return a task whose dead letter is as it should be; two were made before."""
    ids = system.redis.zrange(system.keys.recent, 0, -1)
    letters = {fields["task_id"] for _, fields in system.redis.xrange(system.keys.dead_letters)}
    found = [one for one in ids if one in letters]
    doubled = [fields["task_id"] for _, fields in system.redis.xrange(system.keys.dead_letters)]
    return TaskId(next(one for one in found if doubled.count(one) == 1))


def heartbeat(worker: str) -> dict[str, str]:
    return {**heartbeat_fields(a_heartbeat()), "worker_id": worker, "last_heartbeat": "1767268800000"}
