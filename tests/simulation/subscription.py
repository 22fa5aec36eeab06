"""Listening to a broker through a connection that may break."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, suppress
from contextvars import Context
from typing import TypeVar

from dtq.domain.errors import BrokerUnavailable
from tests.simulation.loop import VirtualLoop

T = TypeVar("T")


class Subscription(AsyncIterator[T]):
    """What somebody hears from the broker, each message after its *way*, in order, until the connection breaks.

    *context* is the server's, to which the way belongs; *loses* tells of each message whether it is lost.
    """

    def __init__(
        self,
        opened: Callable[[], AbstractAsyncContextManager[AsyncIterator[T]]],
        *,
        loop: VirtualLoop,
        context: Context,
        way: Callable[[], float],
        loses: Callable[[], bool],
    ) -> None:
        self._opened = opened()
        self._loop = loop
        self._context = context
        self._way = way
        self._loses = loses
        self._heard: asyncio.Queue[T | BrokerUnavailable] = asyncio.Queue()
        self._pump: asyncio.Task[None] | None = None
        self._last_at = 0.0
        self._is_over = False

    async def begin(self) -> None:
        """Begin to listen: the server's part."""
        messages = await self._opened.__aenter__()
        if self._is_over:
            # whoever asked has given up meanwhile
            await self._opened.__aexit__(None, None, None)
            return
        self._pump = self._loop.create_task(self._pass_on(messages), context=self._context)

    def lose(self) -> None:
        """Break, so that the listener finds out in a while."""
        self.end()
        self._send(BrokerUnavailable("the subscription is lost"))

    def end(self) -> None:
        """Let the server forget it."""
        self._is_over = True
        if self._pump is not None:
            self._pump.cancel()

    async def __anext__(self) -> T:
        heard = await self._heard.get()
        if isinstance(heard, BrokerUnavailable):
            raise heard
        return heard

    async def _pass_on(self, messages: AsyncIterator[T]) -> None:
        try:
            async for message in messages:
                if not self._is_over and not self._loses():
                    self._send(message)
        finally:
            with suppress(RuntimeError):
                await self._opened.__aexit__(None, None, None)

    def _send(self, message: "T | BrokerUnavailable") -> None:
        # one connection keeps its order
        self._last_at = max(self._last_at, self._loop.time() + self._way())
        self._loop.call_at(self._last_at, self._heard.put_nowait, message, context=self._context)
