"""Broadcasting within one process: whoever listens hears, nobody else does."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_BACKLOG: Final = 10_000
"""How many messages a slow listener may leave unheard before it loses the oldest."""


class Listener(Generic[T]):
    """One listener's messages, in the order in which they were sent."""

    def __init__(self) -> None:
        self._backlog: asyncio.Queue[T] = asyncio.Queue(maxsize=_BACKLOG)

    def hear(self, message: T) -> None:
        """Take a message; a full backlog loses its oldest."""
        if self._backlog.full():
            self._backlog.get_nowait()
        self._backlog.put_nowait(message)

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        return await self._backlog.get()


class Channels(Generic[T]):
    """Named channels, which exist as long as somebody listens."""

    def __init__(self) -> None:
        self._listeners: dict[str, list[Listener[T]]] = {}

    @property
    def listeners(self) -> int:
        """How many listen, once a channel."""
        return sum(map(len, self._listeners.values()))

    def send(self, channel: str, message: T) -> None:
        """Let everybody hear *message* who listens to *channel* now."""
        for listener in self._listeners.get(channel, ()):
            listener.hear(message)

    @asynccontextmanager
    async def listen(self, channels: Collection[str]) -> AsyncIterator[AsyncIterator[T]]:
        """Listen to several channels from now on."""
        listener = Listener[T]()
        for channel in channels:
            self._listeners.setdefault(channel, []).append(listener)
        try:
            yield listener
        finally:
            for channel in channels:
                self._listeners[channel].remove(listener)
                if not self._listeners[channel]:
                    del self._listeners[channel]
