"""Children that handlers fork: processes of their own, which share no signals with the worker."""

import os
import signal
from concurrent.futures import thread
from typing import Final

_ENDING: Final = (signal.SIGTERM, signal.SIGINT)
"""The signals that a worker takes for a wish that it end."""


def set_children_free() -> None:
    """From now on let each forked child of this process end by the signals that it is sent, and end as it should."""
    # held back until the child is free: a parent may end it at once
    os.register_at_fork(before=_hold_back, after_in_parent=_let_through, after_in_child=_be_free)


def _hold_back() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)


def _let_through() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)


def _be_free() -> None:
    # the child inherits the pipe by which the event loop hears of signals: what ends the child would drain the worker
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # a thread of a pool that forks is the child's only one, and would wait for itself at the child's end
    vars(thread)["_threads_queues"].clear()
    _let_through()
