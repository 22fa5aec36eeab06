import inspect
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from redis import Redis

from dtq import PermanentError, RetryableError, TaskContext, demo
from dtq.domain.task import QueueName, TaskId, WorkerId
from dtq.handlers import Registry
from tests.servers import RedisServer

REGISTRY = Registry.from_modules([demo])


ROWS = re.findall(
    r"^\| `(\w+)` \| `(.+?)` \|", (Path(demo.__file__).parents[2] / "docs" / "demo.md").read_text(), re.MULTILINE
)
"""The types of the page for newcomers, each with its payload."""


def context(attempt: int = 1) -> TaskContext:
    return TaskContext(
        task_id=TaskId("0" * 32),
        idempotency_key=None,
        attempt=attempt,
        worker_id=WorkerId("worker-00000001"),
        queue=QueueName("default"),
        deadline=datetime(2026, 1, 1, tzinfo=UTC),
        seconds_left=lambda: 1.0,
    )


async def run(name: str, payload: dict[str, object], *, attempt: int = 1) -> Any:
    handler = REGISTRY.get(name)
    assert handler is not None
    returned = handler.function(payload, context(attempt))
    return await returned if inspect.isawaitable(returned) else returned


def test_the_contracts_demo_types_are_there() -> None:
    contract = {
        "echo_task",
        "sleep_task",
        "fibonacci_task",
        "flaky_task",
        "always_fail_task",
        "counter_task",
        "slow_task",
    }

    assert contract == REGISTRY.task_types


def test_the_processor_bound_one_is_sync_and_marked() -> None:
    marks = {handler.name: (handler.is_async, handler.cpu_bound) for handler in REGISTRY}

    assert (False, True) == marks["fibonacci_task"]
    assert (False, False) == marks["slow_task"]
    assert [True] == list(
        {is_async for name, (is_async, _) in marks.items() if name not in {"fibonacci_task", "slow_task"}}
    )


async def test_echo_returns_its_payload() -> None:
    assert {"a": [1]} == await run("echo_task", {"a": [1]})


@pytest.mark.parametrize("name", ["sleep_task", "slow_task"])
async def test_waiting_ones_say_how_long(name: str) -> None:
    assert {"slept": 0.001} == await run(name, {"seconds": 0.001})


@pytest.mark.parametrize("name", ["sleep_task", "slow_task"])
@pytest.mark.parametrize("seconds", [-1, 30.1, "1", True, None, float("nan")])
async def test_no_one_waits_longer_than_half_a_minute(name: str, seconds: object) -> None:
    with pytest.raises(PermanentError, match="seconds must be"):
        await run(name, {"seconds": seconds})


@pytest.mark.parametrize(("n", "expected"), [(0, 0), (1, 1), (10, 55), (20, 6765)])
async def test_fibonacci_numbers(n: int, expected: int) -> None:
    assert {"n": n, "fibonacci": expected} == await run("fibonacci_task", {"n": n})


@pytest.mark.parametrize("n", [-1, 36, 1.5, True, None, "10"])
async def test_fibonacci_has_bounds(n: object) -> None:
    with pytest.raises(PermanentError, match="n must be an integer within"):
        await run("fibonacci_task", {"n": n})


async def test_flaky_fails_as_often_as_it_is_asked() -> None:
    for attempt in (1, 2):
        with pytest.raises(RetryableError):
            await run("flaky_task", {"fail_times": 2}, attempt=attempt)

    assert {"attempt": 3} == await run("flaky_task", {"fail_times": 2}, attempt=3)


async def test_always_fail_fails_retryably() -> None:
    with pytest.raises(RetryableError):
        await run("always_fail_task", {}, attempt=5)


async def test_counter_adds_in_redis_and_forgets_in_time(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DTQ_REDIS_URL", redis_server.url)
    name = f"test-{id(monkeypatch)}"

    sums = [await run("counter_task", {"name": name, "by": step}) for step in (2, 3)]

    assert [{"name": name, "value": 2}, {"name": name, "value": 5}] == sums
    with Redis.from_url(redis_server.url) as client:
        key = f"dtq:demo:counter:{name}"
        assert 0 < int(cast("int", client.ttl(key))) <= demo.COUNTER_LIFETIME.total_seconds()
        client.delete(key)


@pytest.mark.parametrize("payload", [{"name": "a b"}, {"name": 1}, {"by": 1.5}, {"by": 10**10}, {"by": True}])
async def test_counter_has_bounds(payload: dict[str, object]) -> None:
    with pytest.raises(PermanentError, match="must"):
        await run("counter_task", payload)


def test_the_page_for_newcomers_has_each_task_once() -> None:
    assert sorted(REGISTRY.task_types) == sorted(name for name, _ in ROWS)


@pytest.mark.parametrize(("name", "payload"), ROWS, ids=[name for name, _ in ROWS])
async def test_each_payload_of_the_page_is_one_that_its_task_reads_and_does_what_is_said(
    name: str, payload: str, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DTQ_REDIS_URL", redis_server.url)
    handler = REGISTRY.get(name)
    assert handler is not None
    source = inspect.getsource(handler.function)
    if "_seconds(" in source:
        source += inspect.getsource(vars(demo)["_seconds"])
    read = set(re.findall(r'payload\.get\("(\w+)"', source))

    members = json.loads(payload)
    assert name == "echo_task" or read == set(members)
    if name in {"flaky_task", "always_fail_task"}:
        with pytest.raises(RetryableError):
            await run(name, members)
    else:
        assert await run(name, members)
