"""The handlers of the simulation: each does what its payload says for each attempt, and leaves its mark outside."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from typing import Any, Final

from dtq.domain.task import TaskId
from dtq.handlers import Handler, PermanentError, Registry, RetryableError, TaskContext
from dtq.ports.environment import Clock
from tests.simulation.history import Execution, History
from tests.simulation.plan import SYNC_TYPE, TASK_TYPE
from tests.simulation.threads import THREAD, Abandoned

ERRORS: Final[Mapping[str, type[Exception]]] = {
    "retry": RetryableError,
    "permanent": PermanentError,
    "timeout": TimeoutError,
    "value": ValueError,
}


def registry_of(who: str, *, clock: Clock, history: History, block: Callable[[float], Awaitable[None]]) -> Registry:
    """The handlers of one process; *block* lets its main thread stand still for some seconds."""

    async def scripted(payload: Mapping[str, Any], context: TaskContext) -> object:
        """Do what the script has for this attempt."""
        kind, seconds = _part(payload, context)
        with noted(kind, payload, context):
            await _act(kind, seconds, clock=clock, block=block)
        return {"n": payload["n"], "attempt": context.attempt}

    def in_a_thread(payload: Mapping[str, Any], context: TaskContext) -> object:
        """Do the same in a thread, which nobody can end before its time."""
        kind, seconds = _part(payload, context)
        with noted("sync" if kind == "block" else kind, payload, context):
            THREAD.get().sleep(seconds)
            _fail(kind)
        return {"n": payload["n"], "attempt": context.attempt}

    def noted(kind: str, payload: Mapping[str, Any], context: TaskContext) -> AbstractContextManager[None]:
        execution = Execution(
            at=clock.monotonic(),
            who=who,
            task_id=TaskId(context.task_id),
            number=payload["n"],
            attempt=context.attempt,
            kind=kind,
        )
        history.executions.append(execution)
        return _watched(execution, clock=clock)

    return Registry(
        [
            Handler(name=TASK_TYPE, function=scripted, is_async=True),
            Handler(name=SYNC_TYPE, function=in_a_thread, is_async=False),
        ]
    )


@contextmanager
def _watched(execution: Execution, *, clock: Clock) -> Iterator[None]:
    """Take note of how an execution ends; of one whose process is gone nobody ever hears."""
    try:
        yield
    except Abandoned:
        raise
    except BaseException as error:
        execution.ended_at, execution.outcome = clock.monotonic(), type(error).__name__
        raise
    execution.ended_at, execution.outcome = clock.monotonic(), "ok"


def _part(payload: Mapping[str, Any], context: TaskContext) -> tuple[str, float]:
    script = payload["script"]
    kind, seconds = script[min(context.attempt, len(script)) - 1]
    return kind, seconds


async def _act(kind: str, seconds: float, *, clock: Clock, block: Callable[[float], Awaitable[None]]) -> None:
    if kind == "block":
        await block(seconds)
    elif kind == "stubborn":
        await _ignore_everything(seconds, clock=clock)
    else:
        await clock.sleep(timedelta(seconds=seconds))
    _fail(kind)


def _fail(kind: str) -> None:
    if kind in ERRORS:
        raise ERRORS[kind](kind)


async def _ignore_everything(seconds: float, *, clock: Clock) -> None:
    """Go on until the time is over, whoever wants to end it."""
    ends_at = clock.monotonic() + seconds
    while (left := ends_at - clock.monotonic()) > 0:
        try:
            await clock.sleep(timedelta(seconds=left))
        except asyncio.CancelledError:
            continue
