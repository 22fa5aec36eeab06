"""The end of a stream that others read: written to only as fast as they do."""

import os
import select
import stat
from collections.abc import Iterable
from typing import Final, TextIO

UNREAD: Final = (OSError, ValueError, RuntimeError)
"""What a stream raises whose reader is gone, or that was closed or taken away."""

ROOM: Final = select.PIPE_BUF
"""How many bytes a pipe takes without a wait when it says that it takes some."""

_BYTES_OF_A_CHARACTER: Final = 4


class Outlet:
    """Writes to a stream, and never waits for its reader: a log that nobody reads must not stop what it tells of."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._readiness = _readiness_of(stream)

    @property
    def is_awaited(self) -> bool:
        """Whether the stream would have a writer wait now."""
        return self._readiness is not None and not self._readiness.poll(0)

    def pieces(self, text: str) -> Iterable[str]:
        """Cut text into pieces, each of which is written without a wait where the stream takes any."""
        if self._readiness is None:
            return (text,)
        longest = ROOM if text.isascii() else ROOM // _BYTES_OF_A_CHARACTER
        return [text[first : first + longest] for first in range(0, len(text), longest)]

    def write(self, piece: str) -> None:
        """Write and flush one piece; nothing, where nobody will ever read it."""
        try:
            self._stream.write(piece)
            self._stream.flush()
        except UNREAD:
            return


def _readiness_of(stream: TextIO) -> "select.poll | None":
    """Return what tells whether a write would wait; None of a file, which takes whatever it is given."""
    try:
        descriptor = stream.fileno()
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
    except UNREAD:
        return None
    readiness = select.poll()
    readiness.register(descriptor, select.POLLOUT)
    return readiness
