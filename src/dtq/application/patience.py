"""How long a use case goes on trying before it says that the broker is not there."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from functools import partial
from typing import Final, TypeVar

from dtq.domain.errors import OF_ONE_REQUEST, BrokerBehind, BrokerOutOfMemory, BrokerUnavailable, OutcomeUnknown
from dtq.domain.text import text_of
from dtq.ports.environment import Clock, Timer

CALL_DEADLINE: Final = timedelta(seconds=4)
"""How long one use case may take, all its calls and repeats together."""

PAUSES: Final = tuple(timedelta(milliseconds=ms) for ms in (50, 100, 200, 400))
"""How long a use case waits before each repeat."""

_PAUSES_AND_END: Final = (*PAUSES, None)

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
            return await self.write(call)
        except OutcomeUnknown as error:
            raise BrokerUnavailable("the broker did not answer in time") from error

    async def write(self, call: Callable[[], Coroutine[None, None, T]]) -> T:
        """Return what *call* returns.

        Raises OutcomeUnknown where any of its tries may have been carried out, BrokerUnavailable where none was.
        """
        is_unknown = False
        for pause in _PAUSES_AND_END:
            try:
                return await self.once(call)
            except BrokerUnavailable as error:
                is_unknown = is_unknown or isinstance(error, OutcomeUnknown)
                is_final = pause is None or isinstance(error, (BrokerOutOfMemory, BrokerBehind, *OF_ONE_REQUEST))
                if is_final or pause is None or self._left() <= pause.total_seconds():
                    if is_unknown and not isinstance(error, OutcomeUnknown):
                        raise OutcomeUnknown(text_of(error)) from error
                    raise
            await self._clock.sleep(pause)
        raise AssertionError("the last try either returns or raises")

    async def once(self, call: Callable[[], Coroutine[None, None, T]]) -> T:
        """Return what *call*, which must not be repeated, returns. Raises as write does."""
        left = self._left()
        if left <= 0:
            raise BrokerUnavailable("no time was left to ask the broker")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        request = loop.create_task(_carried_out(call, answer))
        farewell: list[Timer] = []

        def end() -> None:
            request.cancel()
            farewell.append(self._clock.call_later(FAREWELL, partial(_fail, answer, _no_answer())))

        timer = self._clock.call_later(timedelta(seconds=left), end)
        try:
            return await answer
        finally:
            for one in (timer, *farewell):
                one.cancel()
            request.cancel()

    def _left(self) -> float:
        return self._ends_at - self._clock.monotonic()


async def _carried_out(call: Callable[[], Coroutine[None, None, T]], answer: "asyncio.Future[T]") -> None:
    """Let *answer* be what *call* returns or raises, if anybody still waits for it."""
    try:
        result = await call()
    except Unsent:
        _fail(answer, BrokerUnavailable("its turn did not come in time: nothing of it was sent"))
    except asyncio.CancelledError:
        _fail(answer, _no_answer())
    except Exception as error:  # noqa: BLE001 - the caller's to handle, who may have left
        _fail(answer, error)
    else:
        if not answer.done():
            answer.set_result(result)


def _fail(answer: "asyncio.Future[T]", error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)


def _no_answer() -> OutcomeUnknown:
    return OutcomeUnknown("no answer came in time; it may or may not have been done")
