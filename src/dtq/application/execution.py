"""One handler, run under its deadline; whatever it does, the worker lives on."""

import asyncio
import contextlib
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import timedelta
from enum import Enum
from typing import Final

from msgspec import Struct

from dtq.application.deadlines import NEVER, Deadlines
from dtq.application.results import not_serializable, outcome_of
from dtq.domain.json_text import JsonProblem
from dtq.domain.outcome import (
    AttemptResult,
    Outcome,
    classify,
    failed,
    timed_out,
    undecodable,
    unknown_task_type,
)
from dtq.domain.task import Task, WorkerId
from dtq.domain.text import class_name, text_of
from dtq.handlers import Handler, Registry, TaskContext
from dtq.handlers.payload import PayloadInvalid, read_payload
from dtq.ports.environment import Clock, Timer

SWALLOW_GRACE: Final = timedelta(seconds=1)
"""How long a canceled async handler may take to end before it is given up."""


class StopReason(Enum):
    """Why a handler is told to stop."""

    TIMEOUT = "timeout"
    CANCEL = "cancel"
    LOST = "lost"
    """The lease is another worker's: nothing is recorded."""
    DRAIN = "drain"
    """The worker ends: nothing is recorded, and the entry is handed back."""


_UNTOLD: Final = failed("UntoldError", "the handler ended, and nobody could tell how", retryable=False)
"""What is recorded where something fails that only describes how the handler ended."""

Decided = Callable[[Outcome | None], None]
Ended = Callable[[], None]


_UNRECORDED: Final = frozenset({StopReason.LOST, StopReason.DRAIN})

# named here, since to look up a member of an enumeration takes longer than to compare it
_TIMEOUT: Final = StopReason.TIMEOUT


class ExecutionRules(Struct, frozen=True, kw_only=True):
    """What every attempt of a worker has in common."""

    worker_id: WorkerId
    result_max_bytes: int
    retryable: tuple[type[BaseException], ...]


class _Means(Struct, frozen=True):
    """What every attempt of an executor works with."""

    clock: Clock
    deadlines: Deadlines
    rules: ExecutionRules


class Attempt(Struct, eq=False):
    """One run of one handler.

    *on_decided* hears the outcome, once, when the handler ends or is given up: None where nothing is to be recorded;
    *on_ended* hears when the handler has really ended, which for one that cannot be stopped is later.
    """

    _task: Task
    _means: _Means
    _loop: asyncio.AbstractEventLoop
    _on_decided: Decided
    _on_ended: Ended
    _timeout: float
    is_decided: bool = False
    # counted from when the handler really starts
    _began_at: float = 0.0
    ends_at: float = NEVER
    _reason: StopReason | None = None
    _grace: Timer | None = None
    _runner: asyncio.Task[None] | None = None

    def stop(self, reason: StopReason) -> None:
        """Tell the handler to stop, as far as it can be told; without effect once the outcome is decided."""
        if self.is_decided:
            return
        is_told = self._reason is not None
        if self._reason is None or reason in _UNRECORDED:
            self._reason = reason
        if self._runner is not None:
            if is_told:
                # each beat reports a request again; a second cancellation would cut the clean-up of the first
                return
            self._runner.cancel()
            self._grace = self._means.clock.call_later(SWALLOW_GRACE, self._give_up)
        elif reason is not StopReason.CANCEL:
            # a thread cannot be stopped: its slot stays taken; after a cancel its end is waited for
            self._give_up()

    def overrun(self) -> None:
        """Tell the handler to stop, for its time is over."""
        self.stop(StopReason.TIMEOUT)

    def refuse(self, outcome: Outcome) -> None:
        """End the attempt without having run anything."""
        self._end(outcome, self._means.clock.monotonic())

    def run_async(self, handler: Handler, payload: object) -> None:
        """Begin to run an async handler, in a task of its own."""
        self._arm(self._means.clock.monotonic())
        self._runner = self._loop.create_task(self._call_async(handler, payload), name=f"handler-{self._task.task_id}")
        self._runner.add_done_callback(self._end_unbegun)

    def run_sync(self, handler: Handler, payload: object, *, pool: ThreadPoolExecutor) -> None:
        """Begin to run a sync handler in a thread of *pool*; where there is none to be had, the attempt fails."""
        turn = [None]
        try:
            pool.submit(self._call_sync, handler, payload, turn)
        except RuntimeError as error:
            # the pool has kept the call all the same, and makes it as soon as a thread of it is free
            if _is_taken(turn):
                self.refuse(failed(class_name(error), text_of(error), retryable=True, kind=AttemptResult.ERROR))

    async def _call_async(self, handler: Handler, payload: object) -> None:
        if self._runner is not None:
            self._runner.remove_done_callback(self._end_unbegun)
        outcome: Outcome = _UNTOLD
        try:
            value = handler.function(payload, self._context(self._began_at))
            if inspect.isawaitable(value):
                value = await value
            outcome = outcome_of(value, max_bytes=self._means.rules.result_max_bytes, ran=self._since(self._began_at))
        except BaseException as error:  # noqa: BLE001 - SystemExit and its kin end the attempt, never the worker
            outcome = classify(error, retryable=self._means.rules.retryable + handler.retry_on)
        finally:
            self._end(outcome, self._means.clock.monotonic())

    def _call_sync(self, handler: Handler, payload: object, turn: list[None]) -> None:
        if not _is_taken(turn):
            return
        outcome: Outcome = _UNTOLD
        try:
            started = self._means.clock.monotonic()
            self._tell(self._arm, started)
            # what it leaves in its thread's own context would be there for the next one
            value = copy_context().run(handler.function, payload, self._context(started))
            outcome = _sync_outcome(value, max_bytes=self._means.rules.result_max_bytes, ran=self._since(started))
        except BaseException as error:  # noqa: BLE001 - SystemExit and its kin end the attempt, never the worker
            outcome = classify(error, retryable=self._means.rules.retryable + handler.retry_on)
        finally:
            # nobody else can see that this thread is free again
            self._tell(self._end, outcome, self._means.clock.monotonic())

    def _since(self, started: float) -> timedelta:
        return timedelta(seconds=self._means.clock.monotonic() - started)

    def _tell(self, callback: Callable[..., None], *arguments: object) -> None:
        # the loop is closed where the worker had to leave this thread behind
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback, *arguments)

    def _context(self, started: float) -> TaskContext:
        task, monotonic = self._task, self._means.clock.monotonic
        ends_at = started + self._timeout
        return TaskContext(
            task_id=task.task_id,
            idempotency_key=task.idempotency_key,
            attempt=task.attempt,
            worker_id=self._means.rules.worker_id,
            queue=task.queue,
            deadline=self._means.clock.now() + task.timeout,
            seconds_left=lambda: ends_at - monotonic(),
        )

    def _arm(self, started: float) -> None:
        """Begin to count the time, from when the handler really started."""
        self._began_at = started
        self.ends_at = started + self._timeout
        self._means.deadlines.watch(self)

    def _end_unbegun(self, _: "asyncio.Task[None]") -> None:
        """End an attempt whose task was canceled before its first line ran."""
        cancelled = classify(asyncio.CancelledError("canceled before it began"), retryable=())
        self._end(cancelled, self._means.clock.monotonic())

    def _end(self, outcome: Outcome, at: float) -> None:
        if self._reason is None and at >= self.ends_at:
            # a handler that blocked the loop kept the timer from going off: its late value does not count
            self._reason = _TIMEOUT
        self._decide(outcome)
        self._means.deadlines.end(self)
        if self._grace is not None:
            self._grace.cancel()
        self._on_ended()
        # they hold whoever holds this attempt: with them it would be left to the garbage collector
        self._on_decided, self._on_ended = _unheard, _unheard

    def _give_up(self) -> None:
        self._decide(failed("CancelledError", "it did not end when it was canceled", retryable=False))

    def _decide(self, outcome: Outcome) -> None:
        if self.is_decided:
            return
        self.is_decided = True
        if self._reason in _UNRECORDED:
            self._on_decided(None)
        elif self._reason is _TIMEOUT:
            self._on_decided(timed_out(self._timeout))
        else:
            self._on_decided(outcome)


class Executor:
    """Begins attempts: finds the handler, reads the payload, and runs the one on the other."""

    def __init__(self, registry: Registry, *, clock: Clock, pool: ThreadPoolExecutor, rules: ExecutionRules) -> None:
        self._registry = registry
        self._means = _Means(clock, Deadlines(clock), rules)
        self._pool = pool

    def begin(self, task: Task, *, on_decided: Decided, on_ended: Ended) -> Attempt:
        """Begin the attempt that *task* was started for; its payload must be loaded."""
        timeout = task.timeout.total_seconds()
        attempt = Attempt(task, self._means, asyncio.get_running_loop(), on_decided, on_ended, timeout)
        handler = self._registry.get(task.task_type)
        if handler is None:
            attempt.refuse(unknown_task_type(task.task_type))
            return attempt
        try:
            payload = read_payload(task.payload or "", kind=handler.payload)
        except (JsonProblem, PayloadInvalid) as problem:
            attempt.refuse(undecodable(str(problem)))
            return attempt
        if handler.is_async:
            attempt.run_async(handler, payload)
        else:
            attempt.run_sync(handler, payload, pool=self._pool)
        return attempt


def _is_taken(turn: list[None]) -> bool:
    """Take the one turn that there is; tell whether nobody, in whatever thread, had taken it."""
    try:
        turn.pop()
    except IndexError:
        return False
    return True


def _sync_outcome(value: object, *, max_bytes: int, ran: timedelta) -> Outcome:
    if not inspect.isawaitable(value):
        return outcome_of(value, max_bytes=max_bytes, ran=ran)
    if inspect.iscoroutine(value):
        value.close()
    return not_serializable("a sync handler returned an awaitable; declare it with async def")


def _unheard(*_: object) -> None:
    """Tell nobody."""
