"""The threads of sync handlers: real ones, of which one at a time runs, and only while everybody else stands still.

So a handler may wait in the midst of its call, as it does in life, and a run is still the same each time.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

import pytest

from dtq.application import crew
from tests.simulation.loop import Actor, VirtualLoop


class Abandoned(BaseException):
    """Ends a handler whose process is gone, or whose run is over; nobody hears of it."""


class Thread:
    """One call in a thread of its own; *actor* is whose turns it runs in."""

    def __init__(self, call: Callable[[], None], *, actor: Actor, loop: VirtualLoop) -> None:
        self.is_over = False
        self._call = call
        self._actor = actor
        self._loop = loop
        self._is_abandoned = False
        self._goes_on = threading.Semaphore(0)
        self._has_paused = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def begin(self) -> None:
        """Run up to the first pause."""
        self._thread.start()
        self._has_paused.acquire()

    def sleep(self, seconds: float) -> None:
        """Pause, to be called within the thread, until virtual time has passed."""
        self._loop.call_later(seconds, self._go_on, context=self._actor.context.copy())
        self._has_paused.release()
        self._goes_on.acquire()
        if self._is_abandoned:
            raise Abandoned

    def abandon(self) -> None:
        """End at once where it pauses."""
        if not self.is_over:
            self._is_abandoned = True
            self._go_on()
            self._thread.join()

    def _go_on(self) -> None:
        self._goes_on.release()
        self._has_paused.acquire()

    def _run(self) -> None:
        context = self._actor.context.copy()
        context.run(THREAD.set, self)
        try:
            context.run(self._call)
        finally:
            self.is_over = True
            self._has_paused.release()


THREAD: Final[ContextVar[Thread]] = ContextVar("thread")
"""The thread that this is, within one."""

THREADS: Final[ContextVar[Actor]] = ContextVar("threads")
"""The actor of the threads of this process."""


class VirtualThreads:
    """As much of a ThreadPoolExecutor as a worker uses, without a queue: *max_workers* calls at a time must do."""

    def __init__(self, *, max_workers: int, thread_name_prefix: str, begun: list[Thread], loop: VirtualLoop) -> None:
        del thread_name_prefix
        self._actor = THREADS.get()
        self._most = max_workers
        self._begun = begun
        self._loop = loop
        self._own: list[Thread] = []

    def submit(self, function: Callable[..., None], *arguments: object) -> None:
        """Begin a call as soon as its thread has its turn."""
        self._own = [thread for thread in self._own if not thread.is_over]
        if len(self._own) >= self._most:
            raise AssertionError(f"{self._actor.name} has {self._most} threads, and another one is asked for")
        thread = Thread(lambda: function(*arguments), actor=self._actor, loop=self._loop)
        self._own.append(thread)
        self._loop.call_soon(self._begin, thread, context=self._actor.context.copy())

    def shutdown(self, *, wait: bool, cancel_futures: bool) -> None:
        """Let go of the threads: those that run go on."""
        del wait, cancel_futures

    def _begin(self, thread: Thread) -> None:
        self._begun.append(thread)
        thread.begin()


@contextmanager
def virtual_threads(loop: VirtualLoop) -> Iterator[None]:
    """Let workers that are made meanwhile have such threads, and end in the end whatever is left of them."""
    begun: list[Thread] = []

    def made(max_workers: int, thread_name_prefix: str) -> VirtualThreads:
        return VirtualThreads(max_workers=max_workers, thread_name_prefix=thread_name_prefix, begun=begun, loop=loop)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crew, "ThreadPoolExecutor", made)
        try:
            yield
        finally:
            for thread in begun:
                thread.abandon()
