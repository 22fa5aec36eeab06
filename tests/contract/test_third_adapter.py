"""How a third party tests its adapter: a fixture `open_harness` of its own, and the tests of the suite imported.

The adapter here counts the calls of its ports and leaves the work to the memory adapter.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from msgspec.structs import asdict

from dtq.adapters.memory import connect as connect_memory
from dtq.ports.backend import Backend, BackendOptions, Connect
from tests.contract import memory_harness
from tests.contract.harness import Harness, OpenHarness
from tests.contract.steps import run
from tests.contract.test_create import (
    test_a_full_queue_refuses as test_that_a_full_queue_refuses,
)
from tests.contract.test_fetch import (
    test_fetch_takes_from_priority_9_down_to_0 as test_that_fetch_is_strict_by_priority,
)
from tests.contract.test_repeats import (
    test_a_change_that_stops_anywhere_is_completed_by_its_repeat as test_that_repeats_complete,
)
from tests.contract.test_wait import (
    test_wait_wakes_when_an_entry_is_added as test_that_wait_wakes,
)

__all__ = [
    "test_that_a_full_queue_refuses",
    "test_that_fetch_is_strict_by_priority",
    "test_that_repeats_complete",
    "test_that_wait_wakes",
]

PORTS = frozenset(Backend.__struct_fields__) - {"sibling"}


class Counted:
    """A port that counts the calls of another one."""

    def __init__(self, name: str, port: object, *, calls: Counter[str]) -> None:
        self._name = name
        self._port = port
        self._calls = calls

    def __getattr__(self, method: str) -> Callable[..., object]:
        self._calls[f"{self._name}.{method}"] += 1
        return cast("Callable[..., object]", getattr(self._port, method))


def counted(backend: Backend, *, calls: Counter[str]) -> Backend:
    ports: dict[str, Any] = {
        name: Counted(name, port, calls=calls) if name in PORTS else port for name, port in asdict(backend).items()
    }
    return Backend(**ports)


class CountedHarness:
    """The memory adapter's harness, with other ports on it."""

    def __init__(self, harness: memory_harness.MemoryHarness, *, calls: Counter[str]) -> None:
        self.backend = counted(harness.backend, calls=calls)
        self._harness = harness

    def __getattr__(self, name: str) -> Any:
        return getattr(self._harness, name)


@pytest.fixture
def calls() -> Counter[str]:
    return Counter()


@pytest.fixture
def open_harness(calls: Counter[str]) -> OpenHarness:
    @asynccontextmanager
    async def opened(*, options: BackendOptions) -> AsyncIterator[Harness]:
        async with memory_harness.open_harness(options=options) as harness:
            yield cast("Harness", CountedHarness(harness, calls=calls))

    return opened


async def test_the_third_adapter_is_the_one_that_is_tested(harness: Harness, calls: Counter[str]) -> None:
    await run(harness)

    assert 1 == calls["broker.create"] == calls["broker.fetch"] == calls["broker.commit"]


async def test_its_maker_is_what_an_entry_point_names(calls: Counter[str]) -> None:
    def connect(url: str, *, options: BackendOptions) -> Backend:
        return counted(connect_memory(url, options=options), calls=calls)

    maker: Connect = connect
    backend = maker("third://anywhere", options=BackendOptions())

    assert [] == list(await backend.queues.names())
    assert 1 == calls["queues.names"]
