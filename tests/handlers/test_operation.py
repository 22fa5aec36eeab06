"""A handler's own step happens once per key, on a real server."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4  # noqa: TID251 - the keys of these tests must be new on a server that all tests share

import pytest
import redis
import redis.asyncio
from msgspec import Raw
from msgspec.json import decode

from dtq import RetryableError, idempotent_operation
from tests.servers import RedisServer

TTL = timedelta(minutes=1)
Client = redis.Redis
AsyncClient = redis.asyncio.Redis


@pytest.fixture
def client(redis_server: RedisServer) -> Iterator[Client]:
    with redis.Redis.from_url(redis_server.url) as client:
        yield client


@pytest.fixture
async def async_client(redis_server: RedisServer) -> AsyncIterator[AsyncClient]:
    async with redis.asyncio.Redis.from_url(redis_server.url, decode_responses=True) as client:
        yield client


@pytest.fixture
def key() -> str:
    return uuid4().hex


class Step:
    """Counts how often it is done."""

    def __init__(self, result: object = "done", error: BaseException | None = None) -> None:
        self.result = result
        self.error = error
        self.times = 0

    def __call__(self) -> object:
        self.times += 1
        if self.error is not None:
            raise self.error
        return self.result

    async def later(self) -> object:
        return self()


@pytest.mark.parametrize("result", [None, {"charge": 12}, [1, 2.5, "x"]])
def test_a_step_is_done_once_and_its_result_given_to_all(client: Client, key: str, result: object) -> None:
    step = Step(result)

    results = [idempotent_operation(client, key, TTL, step) for _ in range(3)]

    assert [result] * 3 == results
    assert 1 == step.times


async def test_an_async_client_is_awaited(async_client: AsyncClient, key: str) -> None:
    step = Step({"charge": 12})

    results = [await idempotent_operation(async_client, key, TTL, step.later) for _ in range(3)]

    assert [{"charge": 12}] * 3 == results
    assert 1 == step.times


async def test_a_plain_function_runs_under_an_async_client_too(async_client: AsyncClient, key: str) -> None:
    result = await idempotent_operation(async_client, key, TTL, Step(5))

    assert 5 == result


def test_an_error_frees_the_key(client: Client, key: str) -> None:
    with pytest.raises(ZeroDivisionError):
        idempotent_operation(client, key, TTL, Step(error=ZeroDivisionError()))

    assert "done" == idempotent_operation(client, key, TTL, Step())


async def test_an_error_frees_the_key_of_an_async_client(async_client: AsyncClient, key: str) -> None:
    for error in (ZeroDivisionError(), asyncio.CancelledError()):
        with pytest.raises(type(error)):
            await idempotent_operation(async_client, key, TTL, Step(error=error).later)

    result = await idempotent_operation(async_client, key, TTL, Step().later)
    assert "done" == result


@pytest.mark.parametrize(
    ("result", "error"),
    [
        (object(), TypeError),
        (float("nan"), ValueError),
        ({float("inf"): 1}, ValueError),
        (Raw(b"1e999"), ValueError),
        (Raw(b'1}, "state": "running"'), ValueError),
        (decode("[" * 65 + "]" * 65), ValueError),
    ],
)
def test_a_result_that_is_no_json_frees_the_key(
    client: Client, key: str, result: object, error: type[Exception]
) -> None:
    with pytest.raises(error):
        idempotent_operation(client, key, TTL, Step(result))

    assert "done" == idempotent_operation(client, key, TTL, Step())


def test_an_async_step_needs_an_async_client(client: Client, key: str) -> None:
    step = Step()

    with pytest.raises(TypeError, match="asyncio client"):
        _ = idempotent_operation(client, key, TTL, step.later)

    assert 0 == step.times
    assert "done" == idempotent_operation(client, key, TTL, step)


def test_whoever_comes_while_the_step_is_done_is_asked_to_come_again(client: Client, key: str) -> None:
    def step() -> str:
        with pytest.raises(RetryableError, match="is being run by another attempt"):
            idempotent_operation(client, key, TTL, Step())
        return "first"

    assert "first" == idempotent_operation(client, key, TTL, step)
    assert "first" == idempotent_operation(client, key, TTL, Step())


def test_after_a_crash_the_key_is_free_when_its_time_is_over(client: Client, key: str) -> None:
    client.set(f"dtq:op:{key}", b'{"state":"running","token":"a crashed attempt"}', px=60_000)
    with pytest.raises(RetryableError):
        idempotent_operation(client, key, TTL, Step())

    client.pexpire(f"dtq:op:{key}", 0)

    assert "done" == idempotent_operation(client, key, TTL, Step())


def test_a_step_that_took_longer_than_its_time_leaves_the_next_ones_result_alone(client: Client, key: str) -> None:
    def slow() -> str:
        client.pexpire(f"dtq:op:{key}", 0)
        assert "second" == idempotent_operation(client, key, TTL, Step("second"))
        return "first"

    assert "first" == idempotent_operation(client, key, TTL, slow)
    assert "second" == idempotent_operation(client, key, TTL, Step())


def test_a_key_lives_no_longer_than_its_time(client: Client, key: str) -> None:
    idempotent_operation(client, key, TTL, Step())

    assert 0 < client.pttl(f"dtq:op:{key}") <= 60_000


class Repeating:
    """A client that sends each SET twice and hands on the second reply, as after a reply that was lost."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def set(self, name: str, value: bytes, *, px: int, nx: bool, get: bool) -> bool | str | bytes | None:
        self._client.set(name, value, px=px, nx=nx, get=get)
        repeated: bool | str | bytes | None = self._client.set(name, value, px=px, nx=nx, get=get)
        return repeated

    def eval(self, script: str, numkeys: int, *keys_and_args: bytes | str | int) -> Any:
        return self._client.eval(script, numkeys, *keys_and_args)


def test_a_client_that_repeats_its_request_is_not_taken_for_another(client: Client, key: str) -> None:
    step = Step()

    assert "done" == idempotent_operation(Repeating(client), key, TTL, step)
