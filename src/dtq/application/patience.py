"""How long a use case goes on trying before it says that the broker is not there."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from datetime import timedelta
from typing import Final, TypeVar

from dtq.domain.errors import BrokerOutOfMemory, BrokerUnavailable, OutcomeUnknown
from dtq.ports.environment import Clock

CALL_DEADLINE: Final = timedelta(seconds=4)
"""How long one use case may take, all its calls and repeats together."""

PAUSES: Final = tuple(timedelta(milliseconds=ms) for ms in (50, 100, 200, 400))
"""How long a use case waits before each repeat."""

T = TypeVar("T")


class Patience:
    """Repeats calls that are safe to repeat, a few times and until the deadline that runs from its making.

    Out of time, a call is left to itself, not canceled: a canceled request could leave its answer to the next one.
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
        """Return what *call* returns. Raises OutcomeUnknown where any of its tries may have been carried out."""
        return await self._repeat(call)

    async def once(self, call: Callable[[], Coroutine[None, None, T]]) -> T:
        """Return what *call*, which must not be repeated, returns. Raises OutcomeUnknown if it is out of time."""
        return await self._in_time(call)

    async def _repeat(self, call: Callable[[], Coroutine[None, None, T]]) -> T:
        is_unknown = False
        for pause in (*PAUSES, None):
            try:
                return await self._in_time(call)
            except BrokerUnavailable as error:
                is_unknown = is_unknown or isinstance(error, OutcomeUnknown)
                is_final = pause is None or isinstance(error, BrokerOutOfMemory)
                if is_final or pause is None or self._left() <= pause:
                    if is_unknown and not isinstance(error, OutcomeUnknown):
                        raise OutcomeUnknown(str(error)) from error
                    raise
            await self._clock.sleep(pause)
        raise AssertionError("the last try either returns or raises")

    def _left(self) -> timedelta:
        return timedelta(seconds=self._ends_at - self._clock.monotonic())

    async def _in_time(self, call: Callable[[], Awaitable[T]]) -> T:
        request = asyncio.ensure_future(call())
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def end(_: object = None) -> None:
            if not over.done():
                over.set_result(None)

        timer = self._clock.call_later(max(self._left(), timedelta()), end)
        request.add_done_callback(end)
        try:
            await over
        finally:
            timer.cancel()
            request.add_done_callback(_look_at)
        if not request.done():
            raise OutcomeUnknown("no answer came in time; it may or may not have been done")
        return request.result()


def _look_at(request: "asyncio.Future[T]") -> None:
    """Take note of the error of a request that nobody waits for any more, so that asyncio does not complain."""
    if not request.cancelled():
        request.exception()
