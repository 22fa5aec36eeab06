"""Handlers that make Python speak, and that log what cannot be written."""

import asyncio
import logging
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from dtq import TaskContext, task

LOG = logging.getLogger("somebodys.library")


class Unprintable:
    """Cannot be written down."""

    def __str__(self) -> str:
        raise ValueError("no text")


class Reluctant:
    """Fails when it is thrown away."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __del__(self) -> None:
        raise ValueError(self._text)


async def _finalizer(text: str) -> None:
    Reluctant(text)


async def _never_awaited(text: str) -> None:
    _finalizer(text)  # type: ignore[unused-coroutine]  # that it is unused is the point


async def _warning(text: str) -> None:
    warnings.warn(text, stacklevel=1)


async def _loop_handler(text: str) -> None:
    def fail(_: asyncio.AbstractEventLoop, __: dict[str, Any]) -> None:
        raise ValueError(text)

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(fail)
    loop.call_exception_handler({"message": "something"})
    loop.set_exception_handler(None)


async def _wrong_format(text: str) -> None:
    LOG.warning("%d things", text)


async def _missing_argument(text: str) -> None:
    LOG.warning("%s and %s", text)  # noqa: PLE1206 - that one is missing is the point


async def _unprintable(_: str) -> None:
    LOG.warning(Unprintable())


async def _unprintable_argument(_: str) -> None:
    LOG.warning("it is %s", Unprintable())


async def _unprintable_value(_: str) -> None:
    structlog.get_logger().warning("it is", value=Unprintable())


WAYS: dict[str, Callable[[str], Awaitable[None]]] = {
    "finalizer": _finalizer,
    "never awaited": _never_awaited,
    "warning": _warning,
    "handler of the loop": _loop_handler,
    "wrong format": _wrong_format,
    "missing argument": _missing_argument,
    "unprintable": _unprintable,
    "unprintable argument": _unprintable_argument,
    "unprintable value": _unprintable_value,
}


@task("speak")
async def speak(payload: dict[str, Any], ctx: TaskContext) -> None:
    """Speak in the way that the payload names."""
    del ctx
    await WAYS[payload["way"]](payload["text"])
