"""What the harness of the peers runs of the stripped design."""

from collections.abc import Iterable
from typing import Any

import common
import msgspec
from limit import Line

FAST = "one script call of 100"

_lines: list[Line] = []


async def work(payload: dict[str, Any]) -> None:
    """Do what the harness measures."""
    await common.awork(payload["i"], payload["x"])


async def open() -> None:  # noqa: A001 - the harness names it
    """Connect."""
    _lines.append(Line(common.URL))
    await _lines[-1].open()


async def submit(number: int, payload: str) -> None:
    """Create one task."""
    await submit_many([number], payload)


async def submit_many(numbers: Iterable[int], payload: str) -> None:
    """Create many in one step."""
    await _lines[-1].create([msgspec.json.encode({"i": number, "x": payload}).decode() for number in numbers])


async def close() -> None:
    """Disconnect."""
    await _lines.pop().close()
