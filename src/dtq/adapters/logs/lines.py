"""Where finished lines go: one stream, written line by line, whoever speaks and whatever becomes of the stream."""

import asyncio
import atexit
import threading
from collections import deque
from collections.abc import Callable
from typing import Final, TextIO

from dtq.adapters.logs.outlet import Outlet

MOST_WAITING: Final = 1024 * 1024
"""How many characters wait for a reader who is slow; lines beyond that are left out, and counted."""

AGAIN: Final = 0.1
"""After how many seconds a reader who is slow is tried again."""


def _unheard(_: int) -> None:
    """Tell nobody of lines that were left out."""


class Lines:
    """Writes lines to a stream. Never raises and never waits: a line that nobody reads is no reason to stop work.

    What is said within one turn of the main thread's event loop is written together, at its end. *on_left_out* hears
    how many lines a slow reader has missed, as soon as it reads on.
    """

    def __init__(self, stream: TextIO, *, on_left_out: Callable[[int], None] = _unheard) -> None:
        self._outlet = Outlet(stream)
        self._on_left_out = on_left_out
        self._lock = threading.RLock()
        self._waiting = deque[str]()
        self._characters = 0
        self._left_out = 0
        self._is_writing = False
        self._flushing: asyncio.AbstractEventLoop | None = None
        atexit.register(self._write)

    def warning(self, *lines: str) -> None:
        """Write lines, after those that wait."""
        with self._lock:
            for line in lines:
                if self._characters > MOST_WAITING:
                    self._left_out += 1
                else:
                    self._waiting.append(line)
                    self._characters += len(line)
            if not self._flushes_soon():
                self._write()

    # structlog calls them by the level of the line
    debug = info = error = critical = warning

    def _write(self) -> None:
        """Write what waits, and what is said meanwhile after it, as far as the stream takes it.

        Python collects garbage whenever it likes, in the midst of a write too, and what it finds may speak in its turn.
        """
        with self._lock:
            if self._is_writing:
                return
            self._is_writing = True
            try:
                while self._waiting and not self._outlet.is_awaited:
                    self._write_some()
            finally:
                self._is_writing = False

    def _write_some(self) -> None:
        waiting, self._waiting = self._waiting, deque[str]()
        self._characters = 0
        waiting.append("")
        pieces = deque(self._outlet.pieces("\n".join(waiting)))
        while pieces and not self._outlet.is_awaited:
            self._outlet.write(pieces.popleft())
        if pieces:
            self._keep("".join(pieces))
        elif self._left_out:
            missed, self._left_out = self._left_out, 0
            self._on_left_out(missed)

    def _keep(self, rest: str) -> None:
        """Put back what the stream has not taken, before what was said meanwhile."""
        self._waiting.appendleft(rest.removesuffix("\n"))
        self._characters += len(rest)

    def _flushes_soon(self) -> bool:
        """Have all written at the end of this turn, where there is one; another thread may be all that still moves."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return False
        if self._flushing is loop:
            return True
        if threading.current_thread() is not threading.main_thread():
            return False
        self._flushing = loop
        loop.call_soon(self._flush)
        return True

    def _flush(self) -> None:
        loop, self._flushing = self._flushing, None
        self._write()
        if self._waiting and loop is not None:
            self._flushing = loop
            loop.call_later(AGAIN, self._flush)
