"""A log that the process writes all it has to say into, until the test is over."""

import contextlib
import io
import json
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import structlog

from dtq.adapters.logs import LogObserver, take_over
from dtq.domain.task import WorkerId

WORKER = WorkerId("worker-00000001")


class Log:
    """An observer and what it has written."""

    def __init__(self, *, as_json: bool = True, level: str = "INFO") -> None:
        self._stream = io.StringIO()
        self.observer = LogObserver(self._stream, service="worker", level=level, as_json=as_json, worker_id=WORKER)

    @property
    def text(self) -> str:
        return self._stream.getvalue()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]


@contextlib.contextmanager
def listening(*, as_json: bool = True, level: str = "INFO") -> Iterator[Log]:
    """Take over what the process says, and give it back afterwards.

    pytest has hooks of its own, others while it prepares a test than while it runs it: so this belongs into the test.
    """
    root, log = logging.getLogger(), Log(as_json=as_json, level=level)
    handlers, root_level, chatty = root.handlers[:], root.level, logging.raiseExceptions
    hooks = sys.excepthook, threading.excepthook, sys.unraisablehook, warnings.showwarning
    write = logging.Logger._log  # noqa: SLF001 - it is put back
    take_over(log.observer, level=level, packages={"handlers_of_mine"})
    try:
        yield log
    finally:
        structlog.reset_defaults()
        root.handlers[:], root.level, logging.raiseExceptions = handlers, root_level, chatty
        sys.excepthook, threading.excepthook, sys.unraisablehook, warnings.showwarning = hooks
        logging.Logger._log = write  # type: ignore[method-assign]  # noqa: SLF001 - the same


@contextlib.contextmanager
def unharmed(*, as_json: bool = True) -> Iterator[Log]:
    """Listen, and say what was raised without it, which pytest could not print."""
    raised = "nothing"
    with listening(as_json=as_json) as log:
        try:
            yield log
        except BaseException as error:  # noqa: BLE001 - whatever it is, it should not be there
            raised = type(error).__name__
    if raised != "nothing":
        message = f"a logging call raised {raised}"
        raise AssertionError(message) from None
