"""When requests must be answered: one timer for all of them."""

import asyncio
from types import TracebackType
from typing import Final

_NEVER: Final = float("inf")
_EARLY: Final = 0.001
"""By how much a timer may go off early."""


class Deadlines:
    """Stops requests that take too long. Almost all are answered long before, and so none gets a timer of its own."""

    def __init__(self) -> None:
        self._watched: Final[set[Deadline]] = set()
        self._rings_at = _NEVER
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def within(self, seconds: float) -> "Deadline":
        """Return the context that the current task is to leave within *seconds* from now; else TimeoutError does."""
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        if task is None:
            raise RuntimeError("only a task can be stopped")
        deadline = Deadline(task, ends_at=loop.time() + seconds, watched=self._watched)
        self._watched.add(deadline)
        if self._loop is not loop:
            # the timer of a loop that has ended never goes off
            self._loop, self._rings_at, self._timer = loop, _NEVER, None
        if deadline.ends_at < self._rings_at:
            self._set(deadline.ends_at, loop)
        return deadline

    def _set(self, at: float, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._rings_at = at
        self._timer = loop.call_at(at, self._ring, loop)

    def _ring(self, loop: asyncio.AbstractEventLoop) -> None:
        self._rings_at, self._timer = _NEVER, None
        now = loop.time() + _EARLY
        for deadline in [one for one in self._watched if one.ends_at <= now]:
            deadline.overrun()
        if self._watched:
            self._set(min(one.ends_at for one in self._watched), loop)


class Deadline:
    """What asyncio.timeout is, without a timer of its own: who overruns it is canceled and leaves by TimeoutError."""

    __slots__ = ("_is_over", "_requested", "_task", "_watched", "ends_at")

    def __init__(self, task: "asyncio.Task[object]", *, ends_at: float, watched: "set[Deadline]") -> None:
        self.ends_at = ends_at
        self._task = task
        self._watched = watched
        self._is_over = False
        # whoever else has canceled the task before is not to be forgotten
        self._requested = task.cancelling()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watched.discard(self)
        if self._is_over and self._task.uncancel() <= self._requested and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def overrun(self) -> None:
        """Stop the task, for its time is over."""
        self._watched.discard(self)
        self._is_over = True
        self._task.cancel()
