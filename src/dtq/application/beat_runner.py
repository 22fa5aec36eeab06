"""Where the beat runs: beside the other loops, or in a thread that a busy main loop cannot stall."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from threading import Thread
from typing import Protocol

from dtq.ports.backend import Backend

Beating = Callable[[Backend], Coroutine[None, None, None]]
"""The beat, to be run over a backend of its own event loop until it is canceled."""


class BeatRunner(Protocol):
    """Runs the beat somewhere, from ``start`` until ``stop`` has returned."""

    def start(self, beat: Beating) -> None:
        """Begin to run *beat*; called once, on the main loop."""
        ...

    async def stop(self) -> None:
        """Return when the beat has ended for good, so that it extends no lease any more; repeatable."""
        ...


class LoopBeat:
    """Runs the beat on the main loop: for tests, and for backends that live on one loop."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._task: asyncio.Task[None] | None = None

    def start(self, beat: Beating) -> None:
        """Begin to run *beat*."""
        self._task = asyncio.create_task(beat(self._backend), name="beat")

    async def stop(self) -> None:
        """Cancel the beat and wait for its end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})


class ThreadBeat:
    """Runs the beat in a thread of its own, with an event loop and a connection of its own."""

    def __init__(self, sibling: Callable[[], Backend]) -> None:
        self._sibling = sibling
        self._thread: Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        self._is_stopping = False

    def start(self, beat: Beating) -> None:
        """Begin to run *beat*; the thread never keeps the process alive.

        Raises OSError or RuntimeError where the machine has no loop or no thread left for it: a worker that went on all
        the same would lose the lease of each task that takes its time.
        """
        main_loop, runner = asyncio.get_running_loop(), asyncio.Runner(loop_factory=asyncio.new_event_loop)
        # made here, where somebody hears of it
        runner.get_loop()
        thread = Thread(target=self._live, args=(runner, beat, main_loop), name="dtq-beat", daemon=True)
        thread.start()
        self._thread = thread

    async def stop(self) -> None:
        """Cancel the beat and wait until its thread has ended."""
        self._is_stopping = True
        if self._thread is None:
            return
        if self._loop is not None:
            _call_soon(self._loop, self._cancel)
        await self._ended.wait()
        self._thread.join()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _live(self, runner: asyncio.Runner, beat: Beating, main_loop: asyncio.AbstractEventLoop) -> None:
        try:
            with runner:
                runner.run(self._run(beat))
        finally:
            _call_soon(main_loop, self._ended.set)

    async def _run(self, beat: Beating) -> None:
        self._loop = asyncio.get_running_loop()
        backend = self._sibling()
        self._task = asyncio.create_task(beat(backend), name="beat")
        if self._is_stopping:
            self._task.cancel()
        await asyncio.wait({self._task})
        await backend.server.close()


def _call_soon(loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
    # the other thread may have closed its loop in this very moment, and needs no call then
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(callback)
