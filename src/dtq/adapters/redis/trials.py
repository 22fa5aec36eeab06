"""One example of every kind of command that dtq sends, on scratch keys."""

from collections.abc import Sequence

from dtq.adapters.redis.keys import GROUP, Keyspace

_LIFETIME_MS = "60000"


Commands = Sequence[Sequence[str]]


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
        ("PTTL", record),
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
