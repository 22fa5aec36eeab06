"""A helper for handlers: do one thing once per key, although the handler may run again."""

import inspect
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final, Protocol, TypeVar, cast, overload
from uuid import uuid4  # noqa: TID251 - runs inside a handler, where no port is at hand

import msgspec

from dtq.domain.json_text import written
from dtq.domain.outcome import RetryableError

_KEY: Final = "dtq:op:{}"  # tidy: a key in the handler author's own Redis, which no Keyspace knows
_REPLACE: Final = """
-- Finishes or abandons an operation, only while it is still the caller's own.
-- KEYS[1] the operation; ARGV[1] the caller's marker, ARGV[2] what replaces it ('' nothing), ARGV[3] milliseconds.
-- Replies 1 if the marker was there.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return 1
"""

T = TypeVar("T")


class AsyncRedis(Protocol):
    """The two commands that are used of an asyncio client; redis-py's has them."""

    def set(self, name: str, value: bytes, *, px: int, nx: bool, get: bool) -> Awaitable[Any]:
        """Set a key if it is new; return the value that was there before."""
        ...

    def eval(self, script: str, numkeys: int, *keys_and_args: bytes | str | int) -> Awaitable[Any]:
        """Run a script."""
        ...


class SyncRedis(Protocol):
    """The two commands that are used of a sync client; redis-py's has them."""

    def set(self, name: str, value: bytes, *, px: int, nx: bool, get: bool) -> bool | str | bytes | None:
        """Set a key if it is new; return the value that was there before."""
        ...

    def eval(self, script: str, numkeys: int, *keys_and_args: bytes | str | int) -> Any:
        """Run a script."""
        ...


@overload
def idempotent_operation(
    redis: AsyncRedis, key: str, ttl: timedelta, fn: Callable[[], Awaitable[T]]
) -> Awaitable[T]: ...


@overload
def idempotent_operation(redis: AsyncRedis, key: str, ttl: timedelta, fn: Callable[[], T]) -> Awaitable[T]: ...


@overload
def idempotent_operation(redis: SyncRedis, key: str, ttl: timedelta, fn: Callable[[], T]) -> T: ...


def idempotent_operation(redis: Any, key: str, ttl: timedelta, fn: Callable[[], Any]) -> Any:
    """Run *fn* once per *key* within *ttl* and return its result, JSON-serializable, to every caller.

    With an asyncio client the call is awaited, and *fn* may be async; with a sync client it is a plain call. An
    exception of *fn* frees the key. While another caller runs it, RetryableError is raised. After a crash inside *fn*
    the key is free again when *ttl* ends, so *ttl* must exceed the longest run. The key in Redis is ``dtq:op:<key>``.
    """
    operation = _Operation(name=_KEY.format(key), milliseconds=max(1, ttl // timedelta(milliseconds=1)))
    asked = redis.set(operation.name, operation.marker, px=operation.milliseconds, nx=True, get=True)
    if inspect.isawaitable(asked):
        return _run_async(operation, redis, asked, fn)
    found = operation.result_in(asked)
    if found is not None:
        return found[0]
    try:
        result = _plain(fn())
        done = operation.done(result)
    except BaseException:
        redis.eval(_REPLACE, 1, operation.name, operation.marker, b"", 0)
        raise
    redis.eval(_REPLACE, 1, operation.name, operation.marker, done, operation.milliseconds)
    return result


async def _run_async(
    operation: "_Operation", redis: AsyncRedis, asked: Awaitable[object], fn: Callable[[], Any]
) -> Any:
    found = operation.result_in(await asked)
    if found is not None:
        return found[0]
    try:
        returned = fn()
        result = await returned if inspect.isawaitable(returned) else returned
        done = operation.done(result)
    except BaseException:
        await redis.eval(_REPLACE, 1, operation.name, operation.marker, b"", 0)
        raise
    await redis.eval(_REPLACE, 1, operation.name, operation.marker, done, operation.milliseconds)
    return result


def _plain(result: object) -> object:
    if inspect.iscoroutine(result):
        result.close()
        message = "an async function needs an asyncio client, whose call is awaited"
        raise TypeError(message)
    return result


class _Operation:
    """The two values a key holds: a marker of the caller that runs, then the result."""

    def __init__(self, *, name: str, milliseconds: int) -> None:
        self.name = name
        self.milliseconds = milliseconds
        self.marker = msgspec.json.encode({"state": "running", "token": uuid4().hex})

    def done(self, result: object) -> bytes:
        return msgspec.json.encode({"state": "done", "result": msgspec.Raw(written(result))})

    def result_in(self, stored: object) -> tuple[object] | None:
        """Return the result that was stored; None where the caller has the key now."""
        marker = stored.encode() if isinstance(stored, str) else stored
        if marker is None or marker == self.marker:
            # a client that repeats a request whose reply was lost finds its own marker
            return None
        record = msgspec.json.decode(cast("bytes | str", stored), type=dict[str, object])
        if record["state"] != "done":
            message = f"{self.name} is being run by another attempt"
            raise RetryableError(message)
        return (record["result"],)
