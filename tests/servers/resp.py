"""Where the messages of Redis' protocol end, whatever pieces they arrive in."""

from collections.abc import Iterator

LINE_END = b"\r\n"
TEXTS = b"$!="
LISTS = b"*~>"
PAIRS = b"%|"


class Messages:
    """Cuts a stream of bytes into whole messages: requests, or replies of protocol 2 or 3."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._seen = 0
        self._wanted = 1

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Add bytes, and yield each message that they complete."""
        self._buffer += data
        while self._element():
            if self._wanted == 0:
                yield bytes(self._buffer[: self._seen])
                del self._buffer[: self._seen]
                self._seen, self._wanted = 0, 1

    def _element(self) -> bool:
        """Step over one element of the message; false where it is not there yet as a whole."""
        end = self._buffer.find(LINE_END, self._seen)
        if end < 0:
            return False
        kind, after = self._buffer[self._seen], end + len(LINE_END)
        if kind in TEXTS:
            length = int(self._buffer[self._seen + 1 : end])
            after += length + len(LINE_END) if length >= 0 else 0
            if len(self._buffer) < after:
                return False
        if kind in LISTS:
            self._wanted += max(int(self._buffer[self._seen + 1 : end]), 0)
        if kind in PAIRS:
            # attributes stand before what they belong to
            self._wanted += 2 * int(self._buffer[self._seen + 1 : end]) + (kind == ord("|"))
        self._seen = after
        self._wanted -= 1
        return True
