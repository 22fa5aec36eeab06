"""Calls of plain code in threads, such as sync handlers, on the event loop of an async test."""

import asyncio
from collections.abc import Coroutine
from concurrent import futures
from typing import Any, Final, TypeVar

T = TypeVar("T")
_LOOK_S: Final = 0.5


class FromThreads:
    """Runs coroutines of other threads on one event loop, while that runs."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run *coroutine* to its end. Raises RuntimeError, before anything is done, where that cannot be."""
        if runs_a_loop():
            coroutine.close()
            raise RuntimeError("sync_client is for sync handlers: await dtq_app.client here")
        loop = self.loop
        if loop is None or not loop.is_running():
            coroutine.close()
            raise RuntimeError("sync_client works while the app runs handlers, and for them")
        future = asyncio.run_coroutine_threadsafe(coroutine, loop)
        # a handler may outlive its test, whose loop then answers nobody
        while not futures.wait([future], timeout=_LOOK_S).done:
            if not loop.is_running():
                future.cancel()
                raise RuntimeError("the test has ended, and its event loop with it")
        return future.result()


def runs_a_loop() -> bool:
    """Tell whether an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
