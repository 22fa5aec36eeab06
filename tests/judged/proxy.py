"""A line between one worker and Redis that falls silent at a chosen moment: a stall without stopping the process."""

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit, urlunsplit

from tests.servers.process import LOOPBACK

CHUNK = 65_536


class Line:
    """A TCP proxy. Once Redis has said *word* for the *times*-th time, all that the worker says is held back."""

    def __init__(self, url: str, *, word: bytes, times: int) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname or LOOPBACK, parts.port or 6379)
        self._listener = socket.create_server((LOOPBACK, 0))
        self.url = urlunsplit(parts._replace(netloc=f"{LOOPBACK}:{self._listener.getsockname()[1]}"))
        self._word = word
        self._times = times
        self._open = threading.Event()
        self._open.set()
        self.stalled = threading.Event()
        self._count_lock = threading.Lock()
        self._sockets: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def release(self) -> None:
        """Pass on what was held back, and everything after it."""
        self._open.set()

    def _accept(self) -> None:
        # the listener's end is how this thread is told to stop
        with contextlib.suppress(OSError):
            while True:
                worker, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                self._sockets += [worker, server]
                threading.Thread(target=self._pump, args=(worker, server, False), daemon=True).start()
                threading.Thread(target=self._pump, args=(server, worker, True), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, listens: bool) -> None:  # noqa: FBT001 - a thread's argument
        # either side may hang up at any time, which ends the line between them
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK):
                if listens:
                    self._hear(data)
                else:
                    self._open.wait()
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def _hear(self, data: bytes) -> None:
        with self._count_lock:
            if self._word not in data:
                return
            self._times -= 1
            if self._times == 0:
                self._open.clear()
                self.stalled.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()
        for end in self._sockets:
            end.close()
