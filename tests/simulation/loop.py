"""An event loop on which time passes only when nobody has anything to do, and whose processes can be stopped."""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from itertools import count
from typing import Any, Final, TypeVar

T = TypeVar("T")

MAX_CALLS: Final = 1_500_000
"""How many callbacks one run may take; one that takes more does not end, or turns for ever in one moment."""

MAX_AT_ONCE: Final = 50_000
"""How many callbacks may run without time passing."""


class Runaway(AssertionError):
    """Something goes on for ever."""


class Actor:
    """One thread of one process: what it has ready to run, in order, and whether it may run at all.

    *speaks_to* is the thread that what is called threadsafe from this one runs in; itself, unless it is named.
    """

    def __init__(self, name: str, *, speaks_to: "Actor | None" = None) -> None:
        self.name = name
        self.ready: deque[Call] = deque()
        self.stops = 0
        self.is_dead = False
        self.context = Context()
        self.context.run(ACTOR.set, self)
        self.speaks_to = speaks_to or self

    @property
    def is_stopped(self) -> bool:
        """Whether it must not run now: for as many reasons as it was stopped for, and each has to end."""
        return self.stops > 0


ACTOR: Final[ContextVar[Actor]] = ContextVar("actor")


class Call:
    """A callback that is due now or at its time."""

    __slots__ = ("_arguments", "_callback", "_context", "actor", "is_cancelled")

    def __init__(
        self, callback: Callable[..., object], arguments: tuple[Any, ...], *, context: Context, actor: Actor
    ) -> None:
        self._callback = callback
        self._arguments = arguments
        self._context = context
        self.actor = actor
        self.is_cancelled = False

    def cancel(self) -> None:
        """Make the call never."""
        self.is_cancelled = True

    def cancelled(self) -> bool:
        """Whether it is never made."""
        return self.is_cancelled

    def run(self) -> None:
        """Make the call in its thread."""
        self._context.run(self._callback, *self._arguments)


class Promise(asyncio.Future[T]):
    """A future that sets hold in the order of making, not of addresses: a run must be the same each time."""

    def __new__(cls, *, loop: "VirtualLoop") -> "Promise[T]":
        made = super().__new__(cls)
        made.number = loop.next_number()
        return made

    number: int

    def __hash__(self) -> int:
        return self.number


class Errand(asyncio.Task[T]):
    """The same for tasks."""

    def __new__(cls, _: Coroutine[Any, Any, T], *, loop: "VirtualLoop", context: Context) -> "Errand[T]":
        del context
        made = super().__new__(cls)
        made.number = loop.next_number()
        return made

    number: int

    def __hash__(self) -> int:
        return self.number


class VirtualLoop(asyncio.AbstractEventLoop):
    """Runs what is ready, one callback at a time; whose turn it is among several actors, *choose* says.

    An actor's own callbacks keep their order, as in its process. When none is left, time jumps to the next timer.
    """

    def __init__(self, choose: Callable[[], float]) -> None:
        self._choose = choose
        self._time = 0.0
        self._timers: list[tuple[float, int, Call]] = []
        self._busy: list[Actor] = []
        self._numbers = count()
        self._is_closed = False
        self._calls = 0
        self._calls_before = 0
        self.unheard: list[dict[str, Any]] = []

    def next_number(self) -> int:
        """Return a number that nothing on this loop has yet."""
        return next(self._numbers)

    def time(self) -> float:
        return self._time

    def is_running(self) -> bool:
        return not self._is_closed

    def is_closed(self) -> bool:
        return self._is_closed

    def get_debug(self) -> bool:
        return False

    def close(self) -> None:
        """Run nothing any more; what coroutines do while they are thrown away has no effect."""
        self._is_closed = True

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.unheard.append(context)

    def create_future(self) -> "asyncio.Future[Any]":
        return Promise(loop=self)

    def create_task(  # type: ignore[override] # typeshed asks for what only its own loops take
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: Context | None = None
    ) -> "asyncio.Task[T]":
        chosen = copy_context() if context is None else context.copy()
        if ACTOR not in chosen:
            # a context of its own does not make it another process's
            chosen.run(ACTOR.set, ACTOR.get())
        task: Errand[T] = Errand(coro, loop=self, context=chosen)
        if name is not None:
            task.set_name(name)
        return task

    def call_soon(  # type: ignore[override] # as create_task
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Call:
        context = context or copy_context()
        call = Call(callback, args, context=context, actor=context[ACTOR])
        self._add(call)
        return call

    def call_soon_threadsafe(  # type: ignore[override] # as create_task
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Call:
        actor = (context or copy_context())[ACTOR]
        heard = actor if actor.speaks_to is actor else actor.speaks_to
        return self.call_soon(callback, *args, context=heard.context.copy())

    def call_later(  # type: ignore[override] # as create_task
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Call:
        return self.call_at(self._time + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override] # as create_task
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Call:
        context = context or copy_context()
        call = Call(callback, args, context=context, actor=context[ACTOR])
        heapq.heappush(self._timers, (when, self.next_number(), call))
        return call

    def stop_actor(self, actor: Actor) -> None:
        """Let nothing of *actor* run until it goes on; what becomes due is kept."""
        actor.stops += 1
        if actor in self._busy:
            self._busy.remove(actor)

    def go_on(self, actor: Actor) -> None:
        """Let *actor* run again, beginning with what it has missed."""
        if actor.is_dead or actor.stops == 0:
            return
        actor.stops -= 1
        if actor.ready and actor.stops == 0:
            self._busy.append(actor)

    def kill(self, actor: Actor) -> None:
        """Let *actor* never run again."""
        self.stop_actor(actor)
        actor.is_dead = True

    def run_until_complete(self, future: Coroutine[Any, Any, T]) -> T:  # type: ignore[override] # a coroutine is enough
        """Run *future* as an actor of its own until it is done, and everybody else meanwhile."""
        asyncio._set_running_loop(self)  # noqa: SLF001 - asyncio documents it as meant for makers of event loops
        try:
            task = self.create_task(future, context=Actor("director").context)
            while not task.done():
                self._turn()
            return task.result()
        finally:
            asyncio._set_running_loop(None)  # noqa: SLF001 - as above

    def _add(self, call: Call) -> None:
        actor = call.actor
        if actor.is_dead:
            return
        if not actor.ready and not actor.is_stopped:
            self._busy.append(actor)
        actor.ready.append(call)

    def _turn(self) -> None:
        busy = self._busy
        if not busy:
            self._pass_time()
            return
        index = int(self._choose() * len(busy)) if len(busy) > 1 else 0
        actor = busy[index]
        call = actor.ready.popleft()
        if not actor.ready:
            del busy[index]
        self._count()
        if not call.is_cancelled:
            call.run()

    def _count(self) -> None:
        self._calls += 1
        if self._calls > MAX_CALLS or self._calls - self._calls_before > MAX_AT_ONCE:
            raise Runaway(f"{self._calls - self._calls_before} callbacks at {self._time:.3f} s, {self._calls} in all")

    def _pass_time(self) -> None:
        timers = self._timers
        while timers:
            at, _, call = heapq.heappop(timers)
            if call.is_cancelled or call.actor.is_dead:
                continue
            if at > self._time:
                self._time = at
                self._calls_before = self._calls
            self._add(call)
            while timers and timers[0][0] <= self._time:
                _, _, also = heapq.heappop(timers)
                if not also.is_cancelled:
                    self._add(also)
            return
        raise Runaway(f"nothing can happen any more at {self._time:.3f} s, and the run has not ended")
