"""Handlers that meddle with what they share with others, and that raise and return what is easily mistaken."""

import asyncio
import locale
import multiprocessing
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from typing import Any, NoReturn

from dtq import RetryableError, TaskContext, task

Payload = dict[str, Any]
Deed = Callable[[], object]

FORKED = multiprocessing.get_context("fork")

LEFT_BEHIND: ContextVar[str] = ContextVar("left_behind", default="nothing")


class Irreducible(Exception):
    """An error that cannot be copied or stored."""

    def __reduce__(self) -> NoReturn:
        raise SystemExit(5)


class Unwieldy:
    """A value that cannot be copied or stored."""

    def __reduce__(self) -> NoReturn:
        raise SystemExit(6)


async def nothing() -> str:
    return "awaited"


async def numbers() -> AsyncIterator[int]:
    yield 1


def raising(error: BaseException) -> Deed:
    def fail() -> NoReturn:
        raise error

    return fail


def change_folder() -> str:
    os.chdir("/")
    return "done"


def change_locale() -> str:
    locale.setlocale(locale.LC_ALL, "C")
    return "done"


def empty_environment() -> str:
    os.environ.clear()  # noqa: TID251 - that a handler does so is the point
    return "done"


def leave_something_behind() -> str:
    found = LEFT_BEHIND.get()
    LEFT_BEHIND.set("something")
    return found


def stop_the_loop() -> str:
    asyncio.get_running_loop().stop()
    return "done"


def end_a_child() -> str:
    child = FORKED.Process(target=signal.pause)
    child.start()
    child.terminate()
    child.join()
    return f"ended by {-(child.exitcode or 0)}"


def have_a_child_work() -> str:
    child = FORKED.Process(target=abs, args=(1,))
    child.start()
    child.join()
    return f"ended with {child.exitcode}"


def have_a_pool_work() -> list[int]:
    with FORKED.Pool(2) as pool:
        return pool.map(abs, [-1, -2])


def run_a_loop() -> str:
    calling = nothing()
    try:
        return asyncio.run(calling)
    finally:
        calling.close()


DEEDS: dict[str, Deed] = {
    "its own timeout": raising(TimeoutError("its own")),
    "a group": raising(ExceptionGroup("all", [ValueError("one"), TypeError("two")])),
    "a group to be tried again": raising(ExceptionGroup("all", [RetryableError("one"), TimeoutError("two")])),
    "irreducible": raising(Irreducible("stays")),
    "nothing raised": raising(None),  # type: ignore[arg-type]  # that it is none is the point
    "unwieldy": Unwieldy,
    "a coroutine": nothing,
    "an async generator": numbers,
    "folder": change_folder,
    "locale": change_locale,
    "environment": empty_environment,
    "left behind": leave_something_behind,
    "stopped loop": stop_the_loop,
    "a loop of its own": run_a_loop,
    "an ended child": end_a_child,
    "a working child": have_a_child_work,
    "a pool of children": have_a_pool_work,
}


@task("meddle")
async def meddle(payload: Payload, ctx: TaskContext) -> object:
    del ctx
    return DEEDS[payload["deed"]]()


@task("meddle_sync")
def meddle_in_thread(payload: Payload, ctx: TaskContext) -> object:
    del ctx
    return DEEDS[payload["deed"]]()


@task("signal")
async def send_signal(payload: Payload, ctx: TaskContext) -> str:
    """Send this process a signal."""
    del ctx
    signal.raise_signal(payload["number"])
    return "done"


@task("signal_sync")
def send_signal_in_thread(payload: Payload, ctx: TaskContext) -> str:
    """Send this process a signal, from a thread."""
    del ctx
    signal.raise_signal(payload["number"])
    return "done"


@task("echo")
async def echo(payload: Payload, ctx: TaskContext) -> Payload:
    """Return the payload."""
    del ctx
    return payload
