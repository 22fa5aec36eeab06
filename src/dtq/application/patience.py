"""How long a use case goes on trying before it says that the broker is not there."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import timedelta
from functools import partial
from typing import Final, TypeVar

from dtq.application.group_commit import GroupCommit, no_answer
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

Item = TypeVar("Item")
T = TypeVar("T")


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
        return await self._repeated(partial(self.once, call))

    async def write_among(
        self, group: GroupCommit[Item, T], item: Item, *, begun: "asyncio.Future[T] | None" = None
    ) -> T:
        """Return what *group* answers to *item*, or raise, as write does; it may have been asked, with *begun*."""
        first = None if begun is None else self._answer_of(group, begun)
        return await self._repeated(partial(self._in_turn, group, item), first=first)

    async def answered(self, group: GroupCommit[Item, T], asked: Sequence["asyncio.Future[T]"]) -> None:
        """Wait until all that *group* was asked for is answered, or has failed for want of time."""
        timer = self._clock.call_later(timedelta(seconds=self._left()), partial(group.give_up, asked))
        try:
            for future in asked:
                if not future.done():
                    await asyncio.wait((future,))
        except asyncio.CancelledError:
            group.forget(asked)
            raise
        finally:
            timer.cancel()

    async def _in_turn(self, group: GroupCommit[Item, T], item: Item) -> T:
        """Do as once does, without a task of its own: who waits for a turn ends as soon as he is told to."""
        left = self._time_left()
        if not group.may_go_alone:
            return await self._answer_of(group, group.ask(item))
        with _Alarm(self._clock, within=left):
            return await group.alone(item)

    async def _answer_of(self, group: GroupCommit[Item, T], asked: "asyncio.Future[T]") -> T:
        if asked.done():
            return asked.result()
        timer = self._clock.call_later(timedelta(seconds=self._left()), partial(group.give_up, (asked,)))
        try:
            return await asked
        finally:
            timer.cancel()
            group.forget((asked,))

    async def _repeated(self, once: Callable[[], Awaitable[T]], *, first: Awaitable[T] | None = None) -> T:
        is_unknown = False
        for pause in _PAUSES_AND_END:
            try:
                return await (first or once())
            except BrokerUnavailable as error:
                is_unknown = is_unknown or isinstance(error, OutcomeUnknown)
                is_final = pause is None or isinstance(error, (BrokerOutOfMemory, BrokerBehind, *OF_ONE_REQUEST))
                if is_final or pause is None or self._left() <= pause.total_seconds():
                    if is_unknown and not isinstance(error, OutcomeUnknown):
                        raise OutcomeUnknown(text_of(error)) from error
                    raise
            first = None
            await self._clock.sleep(pause)
        raise AssertionError("the last try either returns or raises")

    async def once(self, call: Callable[[], Coroutine[None, None, T]]) -> T:
        """Return what *call*, which must not be repeated, returns. Raises as write does."""
        left = self._time_left()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        request = loop.create_task(_carried_out(call, answer))
        farewell: list[Timer] = []

        def end() -> None:
            request.cancel()
            farewell.append(self._clock.call_later(FAREWELL, partial(_fail, answer, no_answer())))

        timer = self._clock.call_later(left, end)
        try:
            return await answer
        finally:
            for one in (timer, *farewell):
                one.cancel()
            request.cancel()

    def _time_left(self) -> timedelta:
        """Return how much time a call that begins now may take. Raises BrokerUnavailable where there is none."""
        left = self._left()
        if left <= 0:
            raise BrokerUnavailable("no time was left to ask the broker")
        return timedelta(seconds=left)

    def _left(self) -> float:
        return self._ends_at - self._clock.monotonic()


class _Alarm:
    """Cancels the running task when time is up, and raises OutcomeUnknown for that: nobody else has canceled it.

    As asyncio.timeout does, on the clock of the use case and with a third of the work.
    """

    __slots__ = ("_caller", "_canceled_before", "_has_rung", "_timer")

    def __init__(self, clock: Clock, *, within: timedelta) -> None:
        caller = asyncio.current_task()
        if caller is None:
            raise RuntimeError("there is no task to cancel")
        self._caller = caller
        self._canceled_before = caller.cancelling()
        self._has_rung = False
        self._timer = clock.call_later(within, self._ring)

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, _error: object, _trace: object) -> None:
        """End, and tell a cancellation by this alarm from one of the caller, which goes on."""
        self._timer.cancel()
        if self._has_rung and self._caller.uncancel() <= self._canceled_before and kind is asyncio.CancelledError:
            raise no_answer()

    def _ring(self) -> None:
        self._has_rung = True
        self._caller.cancel()


async def _carried_out(call: Callable[[], Coroutine[None, None, T]], answer: "asyncio.Future[T]") -> None:
    """Let *answer* be what *call* returns or raises, if anybody still waits for it."""
    try:
        result = await call()
    except asyncio.CancelledError:
        _fail(answer, no_answer())
    except Exception as error:  # noqa: BLE001 - the caller's to handle, who may have left
        _fail(answer, error)
    else:
        if not answer.done():
            answer.set_result(result)


def _fail(answer: "asyncio.Future[T]", error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
