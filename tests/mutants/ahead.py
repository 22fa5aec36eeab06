"""What tests of edits find out ahead: each edit takes seconds or minutes, and several can be judged side by side."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

Found = TypeVar("Found")


def parameters_of(item: pytest.Item) -> Mapping[str, Any]:
    """Return what a test was parametrized with."""
    return item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}


@contextmanager
def found_ahead(
    items: list[pytest.Item], *, jobs: int, ways: Mapping[str, Callable[[Any], Found]]
) -> Iterator[Mapping[Any, "Future[Found]"]]:
    """Find out what the chosen tests will ask: *ways* says how, by the name of the parameter, for its value."""
    pool = ThreadPoolExecutor(jobs)
    found: dict[Any, Future[Found]] = {}
    for item in items:
        for name, value in parameters_of(item).items():
            if name in ways:
                found[value] = pool.submit(ways[name], value)
    try:
        yield found
    finally:
        pool.shutdown(cancel_futures=True)
