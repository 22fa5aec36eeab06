"""How long a use case goes on trying before it says that the broker is not there."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from datetime import timedelta
from typing import Final, TypeVar

from dtq.domain.errors import OF_ONE_REQUEST, BrokerBehind, BrokerOutOfMemory, BrokerUnavailable, OutcomeUnknown
from dtq.domain.text import text_of
from dtq.ports.environment import Clock

CALL_DEADLINE: Final = timedelta(seconds=4)
"""How long one use case may take, all its calls and repeats together."""

PAUSES: Final = tuple(timedelta(milliseconds=ms) for ms in (50, 100, 200, 400))
"""How long a use case waits before each repeat."""

FAREWELL: Final = timedelta(milliseconds=200)
"""How long a canceled call may take to end; one that does not is left to itself."""

T = TypeVar("T")


class Unsent(asyncio.CancelledError):
    """A call was canceled before anything of it was sent: nothing of it is done, nor will be."""


class Patience:
    """Repeats calls that are safe to repeat, a few times and until the deadline that runs from its making.

    Out of time, a call is canceled, and so it is where its caller is. Whoever carries calls out must bear that at any
    point: what comes too late for its caller is to cost nobody else memory or time.
    """

    def __init__(self, clock: Clock, *, within: timedelta = CALL_DEADLINE) -> None:
        self._clock = clock
        self._ends_at = clock.monotonic() + within.total_seconds()

    async def read(self, call: Callable[[], Coroutine[None, None, T]]) -> T:
        """Return what *call* returns. Raises BrokerUnavailable."""
        try:
            return await self._repeat(call)
        except OutcomeUnknown as error:
            raise BrokerUnavailable("the broker did not answer in time") from error

    async def write(self, call: Callable[[], Coroutine[None, None, T]]) -> T:
        """Return what *call* returns.

        Raises OutcomeUnknown where any of its tries may have been carried out, BrokerUnavailable where none was.
        """
        return await self._repeat(call)

    async def once(self, call: Callable[[], Coroutine[None, None, T]]) -> T:
        """Return what *call*, which must not be repeated, returns. Raises as write does."""
        return await self._in_time(call)

    async def _repeat(self, call: Callable[[], Coroutine[None, None, T]]) -> T:
        is_unknown = False
        for pause in (*PAUSES, None):
            try:
                return await self._in_time(call)
            except BrokerUnavailable as error:
                is_unknown = is_unknown or isinstance(error, OutcomeUnknown)
                is_final = pause is None or isinstance(error, (BrokerOutOfMemory, BrokerBehind, *OF_ONE_REQUEST))
                if is_final or pause is None or self._left() <= pause:
                    if is_unknown and not isinstance(error, OutcomeUnknown):
                        raise OutcomeUnknown(text_of(error)) from error
                    raise
            await self._clock.sleep(pause)
        raise AssertionError("the last try either returns or raises")

    def _left(self) -> timedelta:
        return timedelta(seconds=self._ends_at - self._clock.monotonic())

    async def _in_time(self, call: Callable[[], Awaitable[T]]) -> T:
        if self._left() <= timedelta():
            raise BrokerUnavailable("no time was left to ask the broker")
        is_unsent = False

        async def carry_out() -> T:
            nonlocal is_unsent
            try:
                return await call()
            except Unsent:
                is_unsent = True
                raise

        request = asyncio.ensure_future(carry_out())
        try:
            if not await self._ends(request, within=self._left()):
                request.cancel()
                await self._ends(request, within=FAREWELL)
        finally:
            request.cancel()
            request.add_done_callback(_look_at)
        if is_unsent:
            raise BrokerUnavailable("its turn did not come in time: nothing of it was sent")
        if not request.done() or request.cancelled():
            raise OutcomeUnknown("no answer came in time; it may or may not have been done")
        return request.result()

    async def _ends(self, request: "asyncio.Future[T]", *, within: timedelta) -> bool:
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def end(_: object = None) -> None:
            if not over.done():
                over.set_result(None)

        timer = self._clock.call_later(within, end)
        request.add_done_callback(end)
        try:
            await over
        finally:
            timer.cancel()
            request.remove_done_callback(end)
        return request.done()


def _look_at(request: "asyncio.Future[T]") -> None:
    """Take note of the error of a request that nobody waits for any more, so that asyncio does not complain."""
    if not request.cancelled():
        request.exception()
