"""The event loop that servers run on: uvloop's where it is installed."""

import asyncio
from collections.abc import Callable


def runner() -> asyncio.Runner:
    """Return what runs coroutines on the fastest event loop at hand."""
    return asyncio.Runner(loop_factory=_factory())


def _factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
