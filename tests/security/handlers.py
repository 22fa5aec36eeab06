"""Handlers that do what no handler should, each as its payload tells it."""

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NoReturn

import structlog

from dtq import PermanentError, TaskContext, task

Payload = dict[str, Any]


class Unprintable(Exception):
    """An error whose message asks to end the process."""

    def __str__(self) -> str:
        raise SystemExit(3)


class Stray(BaseException):
    """An error that `except Exception` does not catch."""


class Opaque:
    """A value that nobody can read."""

    def __repr__(self) -> str:
        raise SystemExit(4)


def endless(depth: int = 0) -> int:
    """Recurse until Python has had enough."""
    return endless(depth + 1) + 1


def circle() -> list[Any]:
    """A list that is in itself."""
    items: list[Any] = []
    items.append(items)
    return items


def tower(levels: int) -> list[Any]:
    """Lists in lists."""
    items: list[Any] = []
    for _ in range(levels):
        items = [items]
    return items


ERRORS: dict[str, Callable[[], BaseException]] = {
    "exit": lambda: SystemExit(3),
    "exit with text": lambda: SystemExit("a reason"),
    "interrupt": KeyboardInterrupt,
    "cancelled": lambda: asyncio.CancelledError("its own"),
    "generator": GeneratorExit,
    "memory": MemoryError,
    "recursion": RecursionError,
    "stray": lambda: Stray("astray"),
    "unprintable": Unprintable,
    "iteration": lambda: StopIteration(1),
    "group of exits": lambda: BaseExceptionGroup("all", [SystemExit(1), KeyboardInterrupt()]),
    "forged": lambda: ValueError("a\r\nb\u2028\x1b[31m\ud800\x00"),
    "huge": lambda: ValueError("x" * 5_000_000),
    "strange name": lambda: type("a\nb<script>", (Exception,), {})("named"),
    "loop": lambda: asyncio.InvalidStateError("not now"),
}

RESULTS: dict[str, Callable[[], object]] = {
    "set": lambda: {1},
    "bytes": lambda: b"\xff",
    "moment": lambda: datetime(2026, 1, 2, tzinfo=UTC),
    "nothing": lambda: None,
    "integer key": lambda: {1: 2},
    "ten megabytes": lambda: "x" * 10_000_000,
    "many": lambda: {str(number): number for number in range(100_000)},
    "not a number": lambda: float("nan"),
    "infinity inside": lambda: {"a": [1, float("-inf")]},
    "circle": circle,
    "tower": lambda: tower(100_000),
    "surrogate": lambda: "\ud800",
    "surrogate key": lambda: {"\ud800": 1},
    "nothing as key": lambda: {None: 1},
    "too many digits": lambda: 10**5000,
    "complex": lambda: 1j,
    "opaque": Opaque,
    "generator": lambda: (number for number in range(3)),
    "error": lambda: ValueError("no value"),
    "class": lambda: Decimal,
}


@task("echo")
async def echo(payload: Payload, ctx: TaskContext) -> Payload:
    """Return the payload."""
    del ctx
    return payload


@task("raise")
async def fail(payload: Payload, ctx: TaskContext) -> NoReturn:
    del ctx
    error = ERRORS[payload["error"]]()
    raise error


@task("raise_sync")
def fail_in_thread(payload: Payload, ctx: TaskContext) -> NoReturn:
    del ctx
    error = ERRORS[payload["error"]]()
    raise error


@task("give")
async def give(payload: Payload, ctx: TaskContext) -> object:
    del ctx
    return RESULTS[payload["value"]]()


@task("give_sync")
def give_in_thread(payload: Payload, ctx: TaskContext) -> object:
    del ctx
    return RESULTS[payload["value"]]()


async def _recurse() -> object:
    return endless()


async def _cancel_itself() -> object:
    current = asyncio.current_task()
    assert current is not None
    current.cancel()
    return await asyncio.Event().wait()


async def _wait() -> object:
    """Go on until somebody cancels."""
    return await asyncio.Event().wait()


async def _swallow() -> object:
    """Go on whoever cancels, until the loop itself ends."""
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue


async def _exit_beside() -> object:
    async def leave() -> NoReturn:
        raise SystemExit(9)

    await asyncio.wait({asyncio.create_task(leave())})
    return "done"


async def _exit_in_callback() -> object:
    passed = asyncio.Event()

    def leave() -> NoReturn:
        passed.set()
        raise SystemExit(9)

    asyncio.get_running_loop().call_soon(leave)
    await passed.wait()
    return "done"


async def _exit_in_thread() -> object:
    def leave() -> NoReturn:
        raise SystemExit(9)

    thread = threading.Thread(target=leave)
    thread.start()
    thread.join()
    return "done"


async def _close_loop() -> object:
    asyncio.get_running_loop().close()
    return "done"


async def _close_output() -> object:
    sys.stdout.close()
    return "done"


MISDEEDS: dict[str, Callable[[], Awaitable[object]]] = {
    "recurse": _recurse,
    "cancel itself": _cancel_itself,
    "wait": _wait,
    "swallow": _swallow,
    "exit beside": _exit_beside,
    "exit in a callback": _exit_in_callback,
    "exit in a thread": _exit_in_thread,
    "close the loop": _close_loop,
    "close the output": _close_output,
}


@task("misbehave")
async def misbehave(payload: Payload, ctx: TaskContext) -> object:
    del ctx
    return await MISDEEDS[payload["deed"]]()


@task("recurse_sync")
def recurse_in_thread(payload: Payload, ctx: TaskContext) -> object:
    del payload, ctx
    return endless()


@task("hang")
def hang(payload: Payload, ctx: TaskContext) -> NoReturn:
    """Keep a thread for ever."""
    del payload, ctx
    while True:
        threading.Event().wait()


@task("leave")
def leave(payload: Payload, ctx: TaskContext) -> NoReturn:
    """End the process without a word."""
    del ctx
    os._exit(payload["code"])


@task("fault")
def fault(payload: Payload, ctx: TaskContext) -> NoReturn:
    """End the process as a crash in C would."""
    del payload, ctx
    os.kill(os.getpid(), signal.SIGSEGV)
    raise PermanentError("not reached")


@task("loaded")
async def loaded(payload: Payload, ctx: TaskContext) -> list[str]:
    """Tell which of the named modules the worker has imported."""
    del ctx
    return [name for name in payload["names"] if name in sys.modules]


@task("log")
async def log(payload: Payload, ctx: TaskContext) -> str:
    """Write what the payload says to every log there is."""
    del ctx
    text: str = payload["text"]
    logging.getLogger(__name__).warning("%s", text)
    structlog.get_logger().warning(text, **{text: text, "event_type": text})
    return "logged"
