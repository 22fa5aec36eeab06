"""The one handler of the simulation: it does what its payload says for each attempt, and leaves its mark outside."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from dtq.domain.task import TaskId
from dtq.handlers import Handler, PermanentError, Registry, RetryableError, TaskContext
from dtq.ports.environment import Clock
from tests.simulation.history import Execution, History
from tests.simulation.plan import TASK_TYPE

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
        script = payload["script"]
        kind, seconds = script[min(context.attempt, len(script)) - 1]
        execution = Execution(
            at=clock.monotonic(),
            who=who,
            task_id=TaskId(context.task_id),
            number=payload["n"],
            attempt=context.attempt,
            kind=kind,
        )
        history.executions.append(execution)
        try:
            await _act(kind, seconds, clock=clock, block=block)
        except BaseException as error:
            execution.ended_at, execution.outcome = clock.monotonic(), type(error).__name__
            raise
        execution.ended_at, execution.outcome = clock.monotonic(), "ok"
        return {"n": payload["n"], "attempt": context.attempt}

    return Registry([Handler(name=TASK_TYPE, function=scripted, is_async=True)])


async def _act(kind: str, seconds: float, *, clock: Clock, block: Callable[[float], Awaitable[None]]) -> None:
    if kind == "block":
        await block(seconds)
    elif kind == "stubborn":
        await _ignore_everything(seconds, clock=clock)
    else:
        await clock.sleep(timedelta(seconds=seconds))
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
