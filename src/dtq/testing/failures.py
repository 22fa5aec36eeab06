"""Why handlers failed: a test shows what production leaves out of its logs."""

import asyncio
import inspect
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Final

from msgspec.structs import replace

from dtq.domain.task import Task
from dtq.handlers.context import TaskContext
from dtq.handlers.registry import Handler, Registry

RUNS_A_HANDLER: Final[ContextVar[bool]] = ContextVar("dtq_runs_a_handler", default=False)
"""Whether the code that asks was called by a handler."""

_LOG: Final = logging.getLogger("dtq.testing")


class Failures:
    """Keeps what handlers raise, and logs each attempt that fails with its traceback, as a warning."""

    def __init__(self) -> None:
        self.errors: list[BaseException] = []
        self._of_attempts: dict[tuple[str, int], BaseException] = {}

    def watched(self, registry: Registry) -> Registry:
        """Return the same handlers, whose errors are noted."""
        return Registry(map(self._watched, registry))

    def failed(self, task: Task) -> None:
        """Log the failure of the attempt that *task* has just ended."""
        failure = task.failure
        if failure is None:
            return
        error = self._of_attempts.pop((task.task_id, task.attempt), None)
        _LOG.warning(
            "attempt %d of %s (%s) failed: %s: %s",
            task.attempt,
            task.task_type,
            task.task_id,
            failure.error_class,
            failure.error_message,
            exc_info=None if error is None else _of_the_handler(error),
        )

    def _watched(self, handler: Handler) -> Handler:
        function = handler.function

        def watched(payload: object, ctx: TaskContext) -> object:
            token = RUNS_A_HANDLER.set(True)
            try:
                with self._noting(ctx):
                    return function(payload, ctx)
            finally:
                # the thread outlives the handler
                RUNS_A_HANDLER.reset(token)

        async def watched_async(payload: object, ctx: TaskContext) -> object:
            # its task is its own, and so is the context of it
            RUNS_A_HANDLER.set(True)
            with self._noting(ctx):
                returned = function(payload, ctx)
                return await returned if inspect.isawaitable(returned) else returned

        return replace(handler, function=watched_async if handler.is_async else watched)

    @contextmanager
    def _noting(self, ctx: TaskContext) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            if not _was_asked_to_stop(error):
                self.errors.append(error)
                self._of_attempts[ctx.task_id, ctx.attempt] = error
            raise


def _was_asked_to_stop(error: BaseException) -> bool:
    """Tell whether *error* only carries out that somebody has canceled the handler."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        # a sync handler has a thread, and no loop: nobody can cancel it
        return False
    return issubclass(type(error), asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _of_the_handler(error: BaseException) -> tuple[type[BaseException], BaseException, TracebackType | None]:
    """Leave out the frames above the handler, which tell its author nothing."""
    shown = frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == __file__ and frame.tb_next is not None:
            shown = frame.tb_next
        frame = frame.tb_next
    return type(error), error, shown
