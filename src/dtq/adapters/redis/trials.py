"""One example of every kind of command that dtq sends: what its user must be permitted."""

from collections.abc import Mapping, Sequence
from typing import Final

from dtq.adapters.redis.keys import GROUP, Keyspace
from dtq.domain.task import QueueName, TaskId, WorkerId

_LIFETIME_MS = "60000"
_PARENTS: Final = frozenset({"XGROUP", "XINFO", "SCRIPT"})
"""The commands that are permitted by their second word."""

Commands = Sequence[Sequence[str]]


def rule_of(command: Sequence[str]) -> str:
    """Return a command as access rules spell it, without the sign before it."""
    return "|".join(command[:2] if command[0] in _PARENTS else command[:1]).lower()


def needs(keys: Keyspace) -> Mapping[str, Sequence[str]]:
    """Return an example of everything that dtq must be permitted, by what people call it; commands come first."""
    _, commands = trials(keys)
    outside = [
        ("SCRIPT", "LOAD", ""),
        ("EVALSHA", "", "0"),
        ("INFO",),
        ("PING",),
        ("SUBSCRIBE", keys.scratch("channel")),
    ]
    return {
        **{rule_of(command): command for command in (*commands, *outside)},
        **{f"key {name}": ("DEL", name) for name in _key_examples(keys)},
        **{f"channel {name}": ("PUBLISH", name, "") for name in _channel_examples(keys)},
    }


def _key_examples(keys: Keyspace) -> Sequence[str]:
    queue, task_id, worker = QueueName("any"), TaskId("any"), WorkerId("any")
    return (
        *(keys.task(task_id), keys.result(task_id), keys.idempotency(queue, "any"), keys.worker(worker)),
        *(keys.stream(queue, 0), keys.paused(queue), keys.queues, keys.workers, keys.cancelled, keys.recent),
        *(keys.schedule, keys.claimed, keys.dead_letters, keys.audit, keys.lock),
    )


def _channel_examples(keys: Keyspace) -> Sequence[str]:
    return keys.events, keys.worker_channel(WorkerId("any")), keys.queue_channel(QueueName("any"))


def trials(keys: Keyspace) -> tuple[Sequence[str], Commands]:
    """Return keys, and commands on them that succeed in this order on every suitable server and leave nothing."""
    scratch = [keys.scratch(kind) for kind in ("text", "hash", "set", "zset", "stream")]
    text, record, names, scores, stream = scratch
    remove = ("DEL", *scratch)
    return scratch, [
        remove,
        ("SET", text, "1", "PX", _LIFETIME_MS),
        ("GET", text),
        ("GETRANGE", text, "0", "0"),
        ("EXISTS", text),
        *_on_hash(record),
        *_on_sets(names, scores),
        *_on_stream(stream),
        ("SCAN", "0", "MATCH", text, "COUNT", "1"),
        ("PUBLISH", keys.scratch("channel"), ""),
        ("TIME",),
        remove,
    ]


def _on_hash(record: str) -> Commands:
    return [
        ("HSET", record, "field", "1"),
        ("PEXPIRE", record, _LIFETIME_MS),
        ("HGET", record, "field"),
        ("HMGET", record, "field"),
        ("HGETALL", record),
        ("HKEYS", record),
        ("HLEN", record),
        ("HEXISTS", record, "field"),
        ("HINCRBY", record, "field", "1"),
        ("HDEL", record, "field"),
    ]


def _on_sets(names: str, scores: str) -> Commands:
    return [
        ("SADD", names, "member"),
        ("SISMEMBER", names, "member"),
        ("SMEMBERS", names),
        ("SRANDMEMBER", names, "1"),
        ("SREM", names, "member"),
        ("ZADD", scores, "1", "member"),
        ("ZSCORE", scores, "member"),
        ("ZCARD", scores),
        ("ZRANGE", scores, "0", "0"),
        ("ZREVRANGE", scores, "0", "0"),
        ("ZRANGEBYSCORE", scores, "-inf", "+inf"),
        ("ZREMRANGEBYRANK", scores, "0", "0"),
        ("ZREM", scores, "member"),
    ]


def _on_stream(stream: str) -> Commands:
    return [
        ("XGROUP", "CREATE", stream, GROUP, "0", "MKSTREAM"),
        ("XADD", stream, "MAXLEN", "~", "10", "1-1", "field", "1"),
        ("XREADGROUP", "GROUP", GROUP, "worker", "COUNT", "1", "STREAMS", stream, ">"),
        ("XPENDING", stream, GROUP),
        ("XCLAIM", stream, GROUP, "worker", "0", "1-1", "JUSTID"),
        ("XINFO", "GROUPS", stream),
        ("XINFO", "CONSUMERS", stream, GROUP),
        ("XRANGE", stream, "-", "+"),
        ("XREVRANGE", stream, "+", "-"),
        ("XLEN", stream),
        ("XDEL", stream, "1-1"),
        ("XACK", stream, GROUP, "1-1"),
        ("XTRIM", stream, "MAXLEN", "0"),
        ("XGROUP", "DELCONSUMER", stream, GROUP, "worker"),
    ]
