"""Where finished lines go: one stream, written line by line, whoever speaks and whatever becomes of the stream."""

import asyncio
import contextlib
import threading
from collections import deque
from typing import Final, TextIO

_UNREAD: Final = (OSError, ValueError, RuntimeError)
"""What a stream raises whose reader is gone, or that was closed or taken away."""


class Lines:
    """Writes lines to a stream. Never raises: a line that nobody can read is no reason to stop work.

    What is said within one turn of the main thread's event loop is flushed together, at its end.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.RLock()
        self._waiting = deque[str]()
        self._is_writing = False
        self._flushing: asyncio.AbstractEventLoop | None = None

    def warning(self, line: str) -> None:
        """Write a line, and what was said while it was written after it.

        Python collects garbage whenever it likes, in the midst of a write too, and what it finds may speak in its turn.
        """
        with self._lock:
            if self._is_writing:
                self._waiting.append(line)
                return
            self._is_writing = True
            try:
                self._write(line)
                while self._waiting:
                    self._write(self._waiting.popleft())
            finally:
                self._is_writing = False

    # structlog calls them by the level of the line
    debug = info = error = critical = warning

    def _write(self, line: str) -> None:
        try:
            self._stream.write(line + "\n")
            if not self._flushes_soon():
                self._stream.flush()
        except _UNREAD:
            return

    def _flushes_soon(self) -> bool:
        """Have all flushed at the end of this turn, where there is one; another thread may be all that still moves."""
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
        self._flushing = None
        with contextlib.suppress(*_UNREAD):
            self._stream.flush()
