"""How long a use case goes on trying before it says that the broker is not there."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import timedelta
from functools import partial
from typing import Final, Generic, TypeVar

from dtq.application.deadlines import Deadlines
from dtq.application.group_commit import GroupCommit, no_answer
from dtq.domain.errors import (
    OF_ONE_REQUEST,
    BrokerBehind,
    BrokerOutOfMemory,
    BrokerUnavailable,
    OutcomeUnknown,
    QueueFull,
    doubted,
)
from dtq.ports.answers import Full
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

    def __init__(self, clock: Clock, *, within: timedelta = CALL_DEADLINE, deadlines: Deadlines | None = None) -> None:
        """Begin now. *deadlines* are those of many use cases, where there are so many that none is to have a timer."""
        self._clock = clock
        self._deadlines = deadlines or Deadlines(clock)
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

    def write_among(
        self, group: GroupCommit[Item, T], item: Item, *, begun: "asyncio.Future[T] | None" = None
    ) -> Coroutine[None, None, T]:
        """Return what *group* answers to *item*, or raise, as write does; it may have been asked, with *begun*."""
        first = None if begun is None else self._answer_of(group, begun)
        return self._repeated(partial(self._in_turn, group, item), first=first)

    def in_time(self, group: GroupCommit[Item, T], asked: Sequence["asyncio.Future[T]"]) -> "_InTime[Item, T]":
        """Return a block in which *group* is waited for: what it was asked for fails for want of time.

        Where the waiting is canceled, it is forgotten.
        """
        return _InTime(self._deadlines, group, asked, ends_at=self._ends_at)

    async def _in_turn(self, group: GroupCommit[Item, T], item: Item) -> T:
        """Do as once does, without a task of its own: who waits for a turn ends as soon as he is told to."""
        self._time_left()  # raises where there is none
        if not group.may_go_alone:
            return await self._answer_of(group, group.ask(item))
        with _Alarm(self._deadlines, ends_at=self._ends_at):
            return await group.alone(item)

    async def _answer_of(self, group: GroupCommit[Item, T], asked: "asyncio.Future[T]") -> T:
        if asked.done():
            return asked.result()
        with self.in_time(group, (asked,)):
            return await asked

    async def _repeated(self, once: Callable[[], Awaitable[T]], *, first: Awaitable[T] | None = None) -> T:
        is_unknown = False
        for pause in _PAUSES_AND_END:
            try:
                answer = await (first or once())
            except BrokerUnavailable as error:
                is_unknown = is_unknown or isinstance(error, OutcomeUnknown)
                is_final = pause is None or isinstance(error, (BrokerOutOfMemory, BrokerBehind, *OF_ONE_REQUEST))
                if is_final or pause is None or self._left() <= pause.total_seconds():
                    if is_unknown and not isinstance(error, OutcomeUnknown):
                        raise doubted(error) from error
                    raise
            else:
                if is_unknown and isinstance(answer, Full):
                    # what was sent before may come into being as soon as there is room
                    raise doubted(QueueFull(answer.reason, value=answer.value, limit=answer.limit))
                return answer
            first = None
            await self._clock.sleep(pause)
        raise AssertionError("the last try either returns or raises")

    async def once(self, call: Callable[[], Coroutine[None, None, T]]) -> T:
        """Return what *call*, which must not be repeated, returns. Raises as write does."""
        left = timedelta(seconds=self._time_left())
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

    def _time_left(self) -> float:
        """Return how many seconds a call that begins now may take. Raises BrokerUnavailable where there is none."""
        left = self._left()
        if left <= 0:
            raise BrokerUnavailable("no time was left to ask the broker")
        return left

    def _left(self) -> float:
        return self._ends_at - self._clock.monotonic()


class _InTime(Generic[Item, T]):
    """Gives up what a group was asked for when time is up."""

    __slots__ = ("_asked", "_deadlines", "_group", "ends_at")

    def __init__(
        self,
        deadlines: Deadlines,
        group: GroupCommit[Item, T],
        asked: Sequence["asyncio.Future[T]"],
        *,
        ends_at: float,
    ) -> None:
        self.ends_at = ends_at
        self._group = group
        self._asked = asked
        self._deadlines = deadlines

    def __enter__(self) -> None:
        """Begin."""
        self._deadlines.watch(self)

    def __exit__(self, kind: type[BaseException] | None, _error: object, _trace: object) -> None:
        """End, and take along what was asked for where nobody waits for it any more."""
        self._deadlines.end(self)
        if kind is asyncio.CancelledError:
            self._group.forget(self._asked)

    def overrun(self) -> None:
        """Give up."""
        self._group.give_up(self._asked)


class _Alarm:
    """Cancels the running task when time is up, and raises OutcomeUnknown for that: nobody else has canceled it.

    As asyncio.timeout does, on the clock of the use case and with a third of the work.
    """

    __slots__ = ("_caller", "_canceled_before", "_deadlines", "_has_rung", "ends_at")

    def __init__(self, deadlines: Deadlines, *, ends_at: float) -> None:
        caller = asyncio.current_task()
        if caller is None:
            raise RuntimeError("there is no task to cancel")
        self.ends_at = ends_at
        self._caller = caller
        self._canceled_before = caller.cancelling()
        self._has_rung = False
        self._deadlines = deadlines
        deadlines.watch(self)

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, _error: object, _trace: object) -> None:
        """End, and tell a cancellation by this alarm from one of the caller, which goes on."""
        self._deadlines.end(self)
        if self._has_rung and self._caller.uncancel() <= self._canceled_before and kind is asyncio.CancelledError:
            raise no_answer()

    def overrun(self) -> None:
        """Ring."""
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
