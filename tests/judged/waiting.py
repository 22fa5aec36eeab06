"""Waiting for something to become true: the only way in which these tests spend time."""

import time
from collections.abc import Callable
from typing import TypeVar

import pytest

POLL_S = 0.01

T = TypeVar("T")


def wait_until(condition: Callable[[], T], *, within: float, what: str) -> T:
    """Return what *condition* answers once that is true; fail, saying *what* did not happen, after *within* seconds."""
    ends_at = time.monotonic() + within
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() >= ends_at:
            pytest.fail(f"did not happen within {within:g} s: {what} (last seen: {found!r})", pytrace=True)
        time.sleep(POLL_S)


def holds_for(condition: Callable[[], bool], *, seconds: float, what: str) -> None:
    """Watch that *condition* stays true for *seconds*."""
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        assert condition(), f"did not stay true: {what}"
        time.sleep(POLL_S)
