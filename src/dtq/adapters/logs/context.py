"""Lines that name the task whose handler writes them."""

import inspect
from contextlib import AbstractContextManager

import msgspec
import structlog

from dtq.handlers import Handler, Registry, TaskContext


def in_context(registry: Registry) -> Registry:
    """Return the same handlers, whose log lines name the task and the attempt that they run."""
    return Registry(map(_in_context, registry))


def _in_context(handler: Handler) -> Handler:
    function = handler.function

    def bound(payload: object, ctx: TaskContext) -> object:
        with _bound(handler, ctx):
            return function(payload, ctx)

    async def bound_async(payload: object, ctx: TaskContext) -> object:
        with _bound(handler, ctx):
            returned = function(payload, ctx)
            return await returned if inspect.isawaitable(returned) else returned

    return msgspec.structs.replace(handler, function=bound_async if handler.is_async else bound)


def _bound(handler: Handler, ctx: TaskContext) -> AbstractContextManager[None]:
    return structlog.contextvars.bound_contextvars(
        task_id=ctx.task_id, task_type=handler.name, queue=ctx.queue, attempt=ctx.attempt, worker_id=ctx.worker_id
    )
