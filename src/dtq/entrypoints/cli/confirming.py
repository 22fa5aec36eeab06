"""Asking before something is lost."""

import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from dtq.entrypoints.cli.exits import Unusable, print_error
from dtq.entrypoints.cli.session import Terminated, with_broker
from dtq.entrypoints.cli.streams import write_error
from dtq.entrypoints.container import Container


def check_confirmable(*, yes: bool) -> None:
    """Return where ``--yes`` was said or somebody can be asked. Raises Unusable."""
    # a process that was started without one has no stdin at all
    if not yes and (sys.stdin is None or not sys.stdin.isatty()):
        raise Unusable("this cannot be undone, and there is no terminal to ask at: nothing was done; say --yes")


def confirm(container: Container, question: Callable[[Container], Awaitable[str]]) -> None:
    """Ask at the terminal what *question* makes of what it finds, and return where the answer is yes.

    Raises Unusable, and KeyboardInterrupt or Terminated at the first such signal.
    """
    # between two event loops: within one, signals would only be noted down until somebody answers
    text = with_broker(container, question)
    with _heeding_signals():
        write_error(f"{text} [y/N] ")
        answer = sys.stdin.readline()
    if answer.strip().lower() not in {"y", "yes"}:
        raise Unusable("nothing was done")


@contextmanager
def _heeding_signals() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end what waits for an answer, and say then that nothing was done."""
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, _terminate) if is_main else None
    try:
        yield
    except (KeyboardInterrupt, Terminated):
        # the question's line has no end yet
        write_error("\n")
        print_error("dtq: nothing was done")
        raise
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, before)


def _terminate(_: int, __: FrameType | None) -> NoReturn:
    raise Terminated
