"""Lines that name the task whose handler writes them."""

from contextvars import ContextVar
from typing import Any

import msgspec
from structlog.contextvars import bind_contextvars, reset_contextvars

from dtq.handlers import Handler, Registry, TaskContext


def in_context(registry: Registry) -> Registry:
    """Return the same handlers, whose log lines name the task and the attempt that they run.

    Each call needs a context of its own, as an attempt gives it: what is bound in there goes with it.
    """
    surroundings = _Surroundings()
    return Registry(_in_context(handler, surroundings=surroundings) for handler in registry)


class _Surroundings:
    """The variables that structlog keeps for the fields of a task, asked for once and not by name at each call."""

    def __init__(self) -> None:
        tokens = bind_contextvars(task_id=None, task_type=None, queue=None, attempt=None, worker_id=None)
        reset_contextvars(**tokens)
        self._task_id: ContextVar[Any] = tokens["task_id"].var
        self._task_type: ContextVar[Any] = tokens["task_type"].var
        self._queue: ContextVar[Any] = tokens["queue"].var
        self._attempt: ContextVar[Any] = tokens["attempt"].var
        self._worker_id: ContextVar[Any] = tokens["worker_id"].var

    def bind(self, task_type: str, ctx: TaskContext) -> None:
        self._task_id.set(ctx.task_id)
        self._task_type.set(task_type)
        self._queue.set(ctx.queue)
        self._attempt.set(ctx.attempt)
        self._worker_id.set(ctx.worker_id)


def _in_context(handler: Handler, *, surroundings: _Surroundings) -> Handler:
    name, function, bind = handler.name, handler.function, surroundings.bind

    def bound(payload: object, ctx: TaskContext) -> object:
        bind(name, ctx)
        return function(payload, ctx)

    return msgspec.structs.replace(handler, function=bound)
