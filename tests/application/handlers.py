"""Handlers whose course a test decides."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from dtq.handlers import PermanentError, Registry, RetryableError, TaskContext, task

runs: list[TaskContext] = []
"""Every attempt that a handler of this module began."""


class Gate:
    """What handlers wait for, on the event loop or in a thread."""

    def __init__(self) -> None:
        self._for_threads = threading.Event()
        self._for_loop = asyncio.Event()

    def open(self) -> None:
        """Let everybody through, from now on."""
        self._for_threads.set()
        self._for_loop.set()

    async def passage(self) -> None:
        """Wait on the event loop."""
        await self._for_loop.wait()

    def pass_thread(self) -> None:
        """Wait in a thread; a test that forgets the gate is not held up for ever."""
        self._for_threads.wait(timeout=20)


hooks: dict[str, Callable[[], object]] = {}
"""What a test does while a handler holds the event loop."""

_GATES: dict[str, Gate] = {}


def forget_all() -> None:
    """Begin a test with a clean slate."""
    runs.clear()
    hooks.clear()
    _GATES.clear()


def gate(name: str = "gate") -> Gate:
    """The gate of this name."""
    return _GATES.setdefault(name, Gate())


def let_all_go() -> None:
    """End every handler that still waits."""
    for one in _GATES.values():
        one.open()


@task("note")
async def note(payload: Mapping[str, Any], context: TaskContext) -> Mapping[str, Any]:
    """Return at once."""
    runs.append(context)
    return payload


@task("hold")
async def hold(payload: Mapping[str, Any], context: TaskContext) -> str:
    """Go on until the gate opens or the task is cancelled."""
    runs.append(context)
    await gate(payload.get("gate", "gate")).passage()
    return "done"


@task("stubborn")
async def stubborn(payload: Mapping[str, Any], context: TaskContext) -> str:
    """Go on until the gate opens, whoever cancels."""
    runs.append(context)
    waiting = asyncio.ensure_future(gate(payload.get("gate", "gate")).passage())
    while not waiting.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait({waiting})
    return "done after all"


@task("thread")
def thread(payload: Mapping[str, Any], context: TaskContext) -> str:
    """Block a thread until the gate opens."""
    runs.append(context)
    gate(payload.get("gate", "gate")).pass_thread()
    return "done"


@task("block")
async def block(payload: Mapping[str, Any], context: TaskContext) -> str:
    """Hold the event loop while the test does what it wants."""
    runs.append(context)
    hooks[payload["hook"]]()
    return "done"


@task("fail")
async def fail(payload: Mapping[str, Any], context: TaskContext) -> NoReturn:
    """Raise what the payload names."""
    runs.append(context)
    raise ERRORS[payload["error"]]


@task("fail_in_thread")
def fail_in_thread(payload: Mapping[str, Any], context: TaskContext) -> NoReturn:
    """Raise what the payload names, in a thread."""
    runs.append(context)
    raise ERRORS[payload["error"]]


@task("listed", retry_on=(KeyError,))
async def listed(payload: Mapping[str, Any], context: TaskContext) -> NoReturn:
    """Raise an error that the declaration lists as worth a retry."""
    runs.append(context)
    raise KeyError(payload["n"])


@task("give")
async def give(payload: Mapping[str, Any], context: TaskContext) -> Any:
    """Return what the payload names."""
    runs.append(context)
    return VALUES[payload["value"]]


@task("promise")
def promise(payload: Mapping[str, Any], context: TaskContext) -> Any:
    """Return an awaitable from a sync function."""
    return note(payload, context)


ERRORS: dict[str, BaseException] = {
    "retryable": RetryableError("try again"),
    "permanent": PermanentError("never"),
    "timeout": TimeoutError("the handler's own"),
    "value": ValueError("no"),
    "exit": SystemExit(3),
    "interrupt": KeyboardInterrupt(),
    "cancelled": asyncio.CancelledError("its own"),
    "generator": GeneratorExit(),
    "broken": ConnectionResetError("gone"),
}

_CIRCLE: list[Any] = []
_CIRCLE.append(_CIRCLE)

VALUES: dict[str, Any] = {
    "nothing": None,
    "nan": {"a": [1, float("nan"), None]},
    "infinity": float("inf"),
    "nan_key": {"a": {float("nan"): 1}},
    "null": {"a": None, "b": [1.5, None]},
    "surrogate": "\ud800",
    "object": object(),
    "circle": _CIRCLE,
    "huge": "x" * 10_000,
    "integer": 2**80,
}

REGISTRY = Registry.of(note, hold, stubborn, thread, block, fail, fail_in_thread, listed, give, promise)
