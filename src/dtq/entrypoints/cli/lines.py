"""Reading a file line by line, as fast as it comes and never more than a bounded part of it."""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Final

from msgspec import Struct

BLOCK_BYTES: Final = 1 << 20
"""How much is read at once: what is taken further together is hardly more."""

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class Line(Struct, frozen=True, kw_only=True):
    """A line, its number, which begins with 1, and its length; ``text`` is None where that is more than is allowed."""

    number: int
    size: int
    text: bytes | None


class Lines:
    """The lines of a file, pipe or terminal, without their ends and without those that are blank."""

    def __init__(self, descriptor: int, *, longest: int) -> None:
        self._descriptor = descriptor
        self.longest = longest
        self._number = 0
        self._rest = bytearray()
        self._size = 0

    async def blocks(self) -> AsyncIterator[list[Line]]:
        """Return lines as they come: as many as one read brought to their ends."""
        while block := await self._read():
            yield self._split(block)
        if self._size:
            yield self._split(b"\n")

    async def _read(self) -> bytes:
        await _readable(self._descriptor)
        return os.read(self._descriptor, BLOCK_BYTES)

    def _split(self, block: bytes) -> list[Line]:
        *ended, rest = block.split(b"\n")
        found = []
        for part in ended:
            self._keep(part)
            line = self._end_line()
            if line.text is None or line.text.strip():
                found.append(line)
        self._keep(rest)
        return found

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self.longest:
            self._rest.clear()
        else:
            self._rest += part

    def _end_line(self) -> Line:
        self._number += 1
        text = None if self._size > self.longest else bytes(self._rest)
        if text is not None and self._number == 1:
            text = text.removeprefix(_BYTE_ORDER_MARK)
        line = Line(number=self._number, size=self._size, text=text)
        self._rest.clear()
        self._size = 0
        return line


async def _readable(descriptor: int) -> None:
    """Return when a read would not block, so that Ctrl-C is heard meanwhile."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(descriptor, ready.set)
    except PermissionError:
        # a file on a disk, which never lets a reader wait
        return
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
