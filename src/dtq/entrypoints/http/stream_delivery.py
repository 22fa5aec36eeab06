"""Bringing messages to one client, until it goes or has to go."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final

from litestar.exceptions import WebSocketException

from dtq.application.fan_out_tap import Ending, Tap, TapClosed
from dtq.ports.environment import Clock

HEARTBEAT: Final = timedelta(seconds=10)
"""After how long a silence a client is told that the stream lives."""

SEND_LIMIT: Final = timedelta(seconds=10)
"""How long a client may take to take a batch of messages."""

LOST: Final = (OSError, WebSocketException)
"""What sending raises when nobody is there any more."""

Send = Callable[[Sequence[bytes]], Awaitable[None]]
Receive = Callable[[], Awaitable[Any]]


async def deliver(tap: Tap[bytes], *, send: Send, receive: Receive, clock: Clock) -> Ending:
    """Send what *tap* gives until that ends, and return why it did; also ends it, where the client goes or is stuck."""
    loops = [asyncio.create_task(_send_all(tap, send, clock)), asyncio.create_task(_watch(tap, receive))]
    until: set[asyncio.Future[Any]] = {tap.ended, *loops}
    try:
        await asyncio.wait(until, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for loop in loops:
            loop.cancel()
        await asyncio.wait(loops)
    for loop in loops:
        if not loop.cancelled():
            loop.result()
    return tap.ended.result()


@asynccontextmanager
async def time_limit(clock: Clock, limit: timedelta) -> AsyncIterator[None]:
    """Let the block take so long at most. Raises TimeoutError."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as timeout:
        timer = clock.call_later(limit, lambda: timeout.reschedule(loop.time()))
        try:
            yield
        finally:
            timer.cancel()


async def _send_all(tap: Tap[bytes], send: Send, clock: Clock) -> None:
    try:
        while True:
            taken = await tap.take(at_most=HEARTBEAT)
            async with time_limit(clock, SEND_LIMIT):
                await send(taken)
    except TapClosed:
        return
    except TimeoutError:
        tap.end(Ending.STUCK)
    except LOST:
        tap.end(Ending.GONE)


async def _watch(tap: Tap[bytes], receive: Receive) -> None:
    await until_gone(receive)
    tap.end(Ending.GONE)


async def until_gone(receive: Receive) -> None:
    """Return when the client has gone; what it says until then is not for us."""
    while not str((await receive())["type"]).endswith(".disconnect"):
        pass
